// predict PACKAGE ROWS…: reads batches of images from standard input and writes their scores to standard output, both as float32.
#include <exception>
#include <iostream>
#include <stdexcept>
#include <string>

#include <ATen/ops/empty.h>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>

at::Tensor read_images(int64_t rows) {
  at::Tensor images = at::empty({rows, 64});
  if (!std::cin.read(static_cast<char*>(images.data_ptr()), images.nbytes()))
    throw std::runtime_error("fewer images than requested");
  return images;
}

int main(int argc, char** argv) try {
  torch::inductor::AOTIModelPackageLoader loader(argv[1]);
  for (int i = 2; i < argc; ++i) {
    at::Tensor scores = loader.run({read_images(std::stol(argv[i]))})[0].contiguous();
    std::cout.write(static_cast<const char*>(scores.data_ptr()), scores.nbytes());
  }
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
