// generate MODEL STEPS TEXT [KERNELS]: writes the letters with which the model goes on, each time the one of the highest score.
#include <algorithm>
#include <array>
#include <exception>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include <onnxruntime_cxx_api.h>

constexpr std::array INPUTS{"letters", "past_keys", "past_values"};
constexpr std::array OUTPUTS{"scores", "keys", "values"};

// A cache of nothing: one text, no places, as wide as the file says.
Ort::Value empty_cache(const Ort::Session& session, size_t input) {
  std::vector<int64_t> shape = session.GetInputTypeInfo(input).GetTensorTypeAndShapeInfo().GetShape();
  shape.at(0) = 1;
  shape.at(1) = 0;
  return Ort::Value::CreateTensor<float>(Ort::AllocatorWithDefaultOptions(), shape.data(), shape.size());
}

// The tensor has no copy of the letters: they have to live as long as it does.
Ort::Value text_of(std::vector<int64_t>& letters) {
  static const Ort::MemoryInfo memory = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);
  const std::array<int64_t, 2> shape{1, static_cast<int64_t>(letters.size())};
  return Ort::Value::CreateTensor<int64_t>(memory, letters.data(), letters.size(), shape.data(), shape.size());
}

int64_t best_of_last_place(const Ort::Value& scores) {
  const Ort::TensorTypeAndShapeInfo info = scores.GetTensorTypeAndShapeInfo();
  const float* end = scores.GetTensorData<float>() + info.GetElementCount();
  const float* last = end - info.GetShape().back();
  return std::max_element(last, end) - last;
}

int main(int argc, char** argv) try {
  if (argc < 4) throw std::invalid_argument("usage: generate MODEL STEPS TEXT [KERNELS]");
  Ort::Env environment(ORT_LOGGING_LEVEL_FATAL);
  Ort::SessionOptions options;
  options.SetIntraOpNumThreads(1);
  if (argc > 4) options.RegisterCustomOpsLibrary(argv[4]);
  Ort::Session session(environment, argv[1], options);

  const std::string_view text = argv[3];
  std::vector<int64_t> letters(text.begin(), text.end());
  Ort::Value keys = empty_cache(session, 1), values = empty_cache(session, 2);
  for (int step = std::stoi(argv[2]); step > 0; --step) {
    std::array<Ort::Value, 3> given{text_of(letters), std::move(keys), std::move(values)};
    auto found = session.Run(Ort::RunOptions(), INPUTS.data(), given.data(), given.size(), OUTPUTS.data(), OUTPUTS.size());
    letters.assign(1, best_of_last_place(found[0]));
    keys = std::move(found[1]);
    values = std::move(found[2]);
    std::cout << static_cast<char>(letters[0]);
  }
} catch (const std::exception& error) {
  std::cerr << "generate: " << error.what() << '\n';
  return 1;
}
