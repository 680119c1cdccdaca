// complete TOKENS TEXT: writes the token ids of a text.
// complete TOKENS TEXT MODEL STEPS: writes the model's completion. TOKENS contains the bytes of one token per line, as hexadecimal digits.
#include <exception>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>
#include <unordered_map>

#include "loop.hpp"

constexpr Names INPUTS{"tokens", "past_keys", "past_values"};

class Tokenizer {
 public:
  explicit Tokenizer(const char* file) {
    std::ifstream lines(file);
    if (!lines) throw std::invalid_argument(std::string("no file ") + file);
    for (std::string line, token; lines >> line; tokens.push_back(token)) {
      token.clear();
      for (size_t i = 0; i < line.size(); i += 2) token += static_cast<char>(std::stoi(line.substr(i, 2), nullptr, 16));
      numbers[token] = static_cast<int64_t>(tokens.size());
    }
  }

  // A text starts with a space, and is split before each space.
  std::vector<int64_t> encode(std::string text) const {
    if (text.empty() || text[0] != ' ') text.insert(0, 1, ' ');
    std::vector<int64_t> found;
    for (size_t start = 0, end; start < text.size(); start = end) {
      end = std::min(text.find(' ', start + 1), text.size());
      for (const std::string& part : merged(text.substr(start, end - start))) found.push_back(numbers.at(part));
    }
    return found;
  }

  const std::string& bytes(int64_t number) const { return tokens.at(number); }

 private:
  // Merges neighbours while the bytes of any two form a token, starting with the pair that the training merged first.
  std::vector<std::string> merged(const std::string& piece) const {
    std::vector<std::string> parts;
    for (char byte : piece) parts.emplace_back(1, byte);
    for (;;) {
      size_t first = 0, lowest = tokens.size();
      for (size_t i = 0; i + 1 < parts.size(); ++i)
        if (const auto found = numbers.find(parts[i] + parts[i + 1]); found != numbers.end() && size_t(found->second) < lowest) {
          first = i;
          lowest = found->second;
        }
      if (lowest == tokens.size()) return parts;
      parts[first] += parts[first + 1];
      parts.erase(parts.begin() + first + 1);
    }
  }

  std::vector<std::string> tokens;
  std::unordered_map<std::string, int64_t> numbers;
};

int main(int argc, char** argv) try {
  if (argc != 3 && argc != 5) throw std::invalid_argument("usage: complete TOKENS TEXT [MODEL STEPS]");
  const Tokenizer tokenizer(argv[1]);
  const std::vector<int64_t> text = tokenizer.encode(argv[2]);
  if (argc == 3) {
    for (int64_t number : text) std::cout << number << ' ';
    return 0;
  }
  Ort::Env environment(ORT_LOGGING_LEVEL_FATAL);
  Ort::SessionOptions options;
  options.SetIntraOpNumThreads(1);
  Ort::Session session(environment, argv[3], options);
  go_on(session, INPUTS, text, std::stoi(argv[4]), [&](int64_t token) { std::cout << tokenizer.bytes(token); });
} catch (const std::exception& error) {
  std::cerr << "complete: " << error.what() << '\n';
  return 1;
}
