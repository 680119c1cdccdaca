// Measures a program of ExecuTorch.
#include <memory>

#include <executorch/extension/module/module.h>
#include <executorch/extension/tensor/tensor.h>

#include "measured.hpp"

// The wheel brings the library of threads without its header.
namespace executorch::extension::threadpool {
class ThreadPool {
 public:
  bool _unsafe_reset_threadpool(uint32_t threads);
};
ThreadPool* get_threadpool();
}  // namespace executorch::extension::threadpool

using namespace executorch::extension;

int main(int argc, char** argv) {
  return measured(argc, argv, [](const char* file) {
    threadpool::get_threadpool()->_unsafe_reset_threadpool(1);
    auto module = std::make_shared<Module>(file);
    if (module->load_method("forward") != executorch::runtime::Error::Ok) throw std::runtime_error("it does not load");
    return [module](Numbers& given, const Sizes& sizes) -> Numbers {
      const auto answer = module->forward(from_blob(given.data(), {sizes.begin(), sizes.end()}));
      if (!answer.ok()) throw std::runtime_error("the call failed");
      const auto found = answer->at(0).toTensor();
      const float* first = found.const_data_ptr<float>();
      return {first, first + found.numel()};
    };
  });
}
