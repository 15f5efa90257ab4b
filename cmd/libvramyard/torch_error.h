// PyTorch's own class of out-of-memory errors, c10::OutOfMemoryError, which Python programs catch as
// torch.OutOfMemoryError. PyTorch gives plug-ins no header and no function for it, so its
// constructor is looked up by the symbol that PyTorch's libraries export.
//
// This file is included once for each of the two string types of libstdc++, by which builds of
// PyTorch differ.
#pragma once

#include <cstdint>
#include <string>

// c10::SourceLocation.
struct torch_location {
  const char *function, *file;
  std::uint32_t line;
};

// Calls a constructor of c10::Error with a location and a text.
template <typename String>
void construct_error(void *constructor, void *at, const char *text) {
  reinterpret_cast<void (*)(void *, torch_location, String)>(constructor)(at, {"vramyard_alloc", "libvramyard", 0}, String(text));
}

void construct_error_old(void *constructor, void *at, const char *text);
