// Measures an ONNX file in ONNX Runtime.
#include <onnxruntime_cxx_api.h>

#include "measured.hpp"

class Loaded {
 public:
  explicit Loaded(const char* file) : session_(environment_, file, one_thread()) {
    Ort::AllocatorWithDefaultOptions allocator;
    input_ = session_.GetInputNameAllocated(0, allocator).get();
    output_ = session_.GetOutputNameAllocated(0, allocator).get();
  }

  Numbers operator()(Numbers& given, const Sizes& sizes) {
    const Ort::Value value = Ort::Value::CreateTensor<float>(memory_, given.data(), given.size(), sizes.data(), sizes.size());
    const char *input = input_.c_str(), *output = output_.c_str();
    const auto found = session_.Run(Ort::RunOptions(), &input, &value, 1, &output, 1);
    const float* first = found[0].GetTensorData<float>();
    return {first, first + found[0].GetTensorTypeAndShapeInfo().GetElementCount()};
  }

 private:
  static Ort::SessionOptions one_thread() {
    Ort::SessionOptions options;
    options.SetIntraOpNumThreads(1).SetInterOpNumThreads(1);
    return options;
  }

  Ort::Env environment_;
  Ort::Session session_;
  Ort::MemoryInfo memory_ = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);
  std::string input_, output_;
};

int main(int argc, char** argv) {
  return measured(argc, argv, [](const char* file) { return Loaded(file); });
}
