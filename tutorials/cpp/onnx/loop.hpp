// Greedy generation with a model that has a cache: each step adds the token with the highest score.
#pragma once
#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>
#include <vector>

#include <onnxruntime_cxx_api.h>

using Names = std::array<const char*, 3>;

constexpr Names OUTPUTS{"scores", "keys", "values"};

// Returns an empty cache. Two dimensions are dynamic (-1 in the model): the first is the batch, 1 here, the second the length, 0.
inline Ort::Value empty_cache(const Ort::Session& session, size_t input) {
  std::vector<int64_t> shape = session.GetInputTypeInfo(input).GetTensorTypeAndShapeInfo().GetShape();
  int64_t dynamic = 1;
  for (int64_t& size : shape)
    if (size < 0) size = dynamic--;
  return Ort::Value::CreateTensor<float>(Ort::AllocatorWithDefaultOptions(), shape.data(), shape.size());
}

// The tensor doesn't copy the tokens, so they must live as long as the tensor.
inline Ort::Value text_of(std::vector<int64_t>& tokens) {
  static const Ort::MemoryInfo memory = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);
  const std::array<int64_t, 2> shape{1, static_cast<int64_t>(tokens.size())};
  return Ort::Value::CreateTensor<int64_t>(memory, tokens.data(), tokens.size(), shape.data(), shape.size());
}

inline int64_t best_of_last_place(const Ort::Value& scores) {
  const Ort::TensorTypeAndShapeInfo info = scores.GetTensorTypeAndShapeInfo();
  const float* end = scores.GetTensorData<float>() + info.GetElementCount();
  const float* last = end - info.GetShape().back();
  return std::max_element(last, end) - last;
}

// Calls `take` with each chosen token.
template <class Take>
void go_on(Ort::Session& session, const Names& inputs, std::vector<int64_t> tokens, int steps, Take take) {
  if (tokens.empty()) throw std::invalid_argument("the text is empty");
  Ort::Value keys = empty_cache(session, 1), values = empty_cache(session, 2);
  for (; steps > 0; --steps) {
    std::array<Ort::Value, 3> given{text_of(tokens), std::move(keys), std::move(values)};
    auto found = session.Run(Ort::RunOptions(), inputs.data(), given.data(), given.size(), OUTPUTS.data(), OUTPUTS.size());
    tokens.assign(1, best_of_last_place(found[0]));
    keys = std::move(found[1]);
    values = std::move(found[2]);
    take(tokens[0]);
  }
}
