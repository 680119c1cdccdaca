// Measures a package of AOTInductor. How many threads compute is for OMP_NUM_THREADS to say.
#include <memory>

#include <ATen/ops/from_blob.h>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>

#include "measured.hpp"

int main(int argc, char** argv) {
  return measured(argc, argv, [](const char* file) {
    auto loader = std::make_shared<torch::inductor::AOTIModelPackageLoader>(file);
    return [loader](Numbers& given, const Sizes& sizes) -> Numbers {
      const at::Tensor found = loader->run({at::from_blob(given.data(), sizes)})[0].contiguous();
      const float* first = found.const_data_ptr<float>();
      return {first, first + found.numel()};
    };
  });
}
