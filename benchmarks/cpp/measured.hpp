// What the programs share: the input and the wanted output from files, the processor's seconds of each step, one line of JSON.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <ctime>
#include <exception>
#include <fstream>
#include <iostream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

using Numbers = std::vector<float>;
using Sizes = std::vector<int64_t>;

// Of this process since it began, dynamic linking included.
inline double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

// What Linux notes of the process; getrusage would tell of the one that started it, too.
inline double peak_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (double kilobytes = 0; word == "VmHWM:" && status >> kilobytes) return kilobytes * 1024;
  throw std::runtime_error("no peak memory in /proc/self/status");
}

inline Numbers numbers_in(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  if (bytes.empty()) throw std::runtime_error("nothing to read in " + path);
  const auto* first = reinterpret_cast<const float*>(bytes.data());
  return {first, first + bytes.size() / sizeof(float)};
}

inline float furthest(const Numbers& one, const Numbers& other) {
  if (one.size() != other.size()) throw std::runtime_error("another number of outputs than wanted");
  float apart = 0;
  for (size_t i = 0; i < one.size(); ++i) apart = std::max(apart, std::abs(one[i] - other[i]));
  return apart;
}

// PROGRAM FILE GIVEN WANTED CALLS SIZE…: `load` takes the file, and returns what takes numbers of these sizes and gives numbers.
template <class Load>
int measured(int argc, char** argv, Load load) try {
  if (argc < 6) throw std::runtime_error("give FILE GIVEN WANTED CALLS SIZE…");
  const Sizes sizes = [&] {
    Sizes found;
    for (int i = 5; i < argc; ++i) found.push_back(std::stol(argv[i]));
    return found;
  }();
  Numbers given = numbers_in(argv[2]);
  const Numbers wanted = numbers_in(argv[3]);
  const int calls = std::stoi(argv[4]);

  const double started = processor_seconds();
  auto call = load(argv[1]);
  const double loaded = processor_seconds();
  const float apart = furthest(call(given, sizes), wanted);
  const double answered = processor_seconds();
  for (int i = 0; i < calls; ++i) call(given, sizes);
  const double later = (processor_seconds() - answered) / calls;

  std::cout << "{\"start\": " << started << ", \"load\": " << loaded - started << ", \"first call\": " << answered - loaded
            << ", \"first answer\": " << answered << ", \"later call\": " << later << ", \"memory\": " << peak_bytes() << ", \"apart\": " << apart << "}\n";
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
