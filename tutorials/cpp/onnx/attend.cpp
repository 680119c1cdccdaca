// A library with one kernel for ONNX Runtime, lab308::Attend: causal attention of new positions to themselves and all earlier ones.
#include <algorithm>
#include <cmath>
#include <vector>

#define ORT_API_MANUAL_INIT
#include <onnxruntime_cxx_api.h>
#include <onnxruntime_lite_custom_op.h>

using Floats = Ort::Custom::Tensor<float>;

struct Attend {
  float scale;

  Attend(const OrtApi*, const OrtKernelInfo* info) : scale(Ort::ConstKernelInfo(info).GetAttribute<float>("scale")) {}

  Ort::Status Compute(const Floats& queries, const Floats& keys, const Floats& values, Floats& found) {
    const std::vector<int64_t> asked = queries.Shape(), held = keys.Shape();
    if (asked.size() != 3 || held.size() != 3 || asked[0] != held[0] || asked[2] != held[2] || held != values.Shape() || asked[1] > held[1])
      return Ort::Status("Attend needs (batch, new, width) and twice (batch, positions, width), with new <= positions", ORT_INVALID_ARGUMENT);
    const int64_t count = asked[1], places = held[1], width = asked[2];
    float* out = found.Allocate(asked);
    for (int64_t row = 0; row < asked[0] * count; ++row, out += width) {
      const int64_t first = row / count * places, seen = places - count + row % count + 1;
      one_place(queries.Data() + row * width, keys.Data() + first * width, values.Data() + first * width, seen, width, out);
    }
    return Ort::Status();
  }

  void one_place(const float* query, const float* keys, const float* values, int64_t seen, int64_t width, float* out) {
    std::vector<float> weights(seen, 0);
    for (int64_t place = 0; place < seen; ++place)
      for (int64_t i = 0; i < width; ++i) weights[place] += query[i] * keys[place * width + i] * scale;
    const float highest = *std::max_element(weights.begin(), weights.end());
    float sum = 0;
    for (float& weight : weights) sum += weight = std::exp(weight - highest);
    std::fill(out, out + width, 0);
    for (int64_t place = 0; place < seen; ++place)
      for (int64_t i = 0; i < width; ++i) out[i] += weights[place] / sum * values[place * width + i];
  }
};

extern "C" OrtStatus* RegisterCustomOps(OrtSessionOptions* options, const OrtApiBase* base) {
  Ort::InitApi(base->GetApi(ORT_API_VERSION));
  static Ort::CustomOpDomain domain = [] {
    Ort::CustomOpDomain made{"lab308"};
    made.Add(Ort::Custom::CreateLiteCustomOp<Attend>("Attend", "CPUExecutionProvider"));
    return made;
  }();
  Ort::UnownedSessionOptions{options}.Add(domain);
  return nullptr;
}
