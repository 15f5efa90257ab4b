// What the names of PyTorch's kernels say.
#ifndef VRAMYARD_NAMES_H
#define VRAMYARD_NAMES_H

// What is known of a kernel of PyTorch.
enum effect : char {
  EFFECT_UNREAD,   // its name was not looked at yet
  EFFECT_NONE,     // nothing is known
  EFFECT_FILL,     // full, ones, zeros
  EFFECT_COUNT,    // arange
  EFFECT_ADD,      // adds a number to a tensor
  EFFECT_ADD_ALL,  // adds a number to each tensor of a list
  EFFECT_CHANGE,   // computes a tensor
};

struct meaning {
  enum effect effect;
  char type;    // of the elements, as mangled; 'e' is a half and 'g' a bfloat16; 0 if it is not known
  char width;   // bytes of an element of the result; 0 if an argument of the kernel has them
  bool wide;    // the number of elements has eight bytes, otherwise four
};

struct meaning read_name(const char *name);

#endif
