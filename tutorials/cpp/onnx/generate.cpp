// generate MODEL STEPS TEXT [KERNELS]: writes the model's completion, letter by letter, each time the one with the highest score.
#include <algorithm>
#include <exception>
#include <iostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "loop.hpp"

constexpr Names INPUTS{"letters", "past_keys", "past_values"};

int main(int argc, char** argv) try {
  if (argc < 4) throw std::invalid_argument("usage: generate MODEL STEPS TEXT [KERNELS]");
  Ort::Env environment(ORT_LOGGING_LEVEL_FATAL);
  Ort::SessionOptions options;
  options.SetIntraOpNumThreads(1);
  if (argc > 4) options.RegisterCustomOpsLibrary(argv[4]);
  Ort::Session session(environment, argv[1], options);

  std::vector<int64_t> letters;
  for (unsigned char letter : std::string_view(argv[3])) letters.push_back(letter);  // a char may be negative
  const auto write = [](int64_t letter) { std::cout << static_cast<char>(letter); };
  go_on(session, INPUTS, letters, std::stoi(argv[2]), write);
} catch (const std::exception& error) {
  std::string said = error.what();
  std::replace(said.begin(), said.end(), '\n', ' ');  // the message on a wrong shape has several lines
  std::cerr << "generate: " << said << '\n';
  return 1;
}
