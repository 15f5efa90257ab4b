//go:build cgo && linux

// The string type of libstdc++ before C++11, which builds of PyTorch up to 2.6 have.
#define _GLIBCXX_USE_CXX11_ABI 0

#include "torch_error.h"

void construct_error_old(void *constructor, void *at, const char *text) {
  construct_error<std::string>(constructor, at, text);
}
