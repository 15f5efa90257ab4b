// A kernel of PyTorch is a template, and its mangled name has its types. The names are those of the
// Itanium ABI, which nvcc uses on Linux.
#include "names.h"

#include <stdlib.h>
#include <string.h>

namespace {

bool has(const char *name, const char *text) { return strstr(name, text) != nullptr; }

// The bytes of a type by its letter; 0 for one that is not known.
int width_of(char type) {
  switch (type) {
    case 'a': case 'b': case 'c': case 'h': return 1;
    case 'e': case 'g': case 's': case 't': return 2;
    case 'f': case 'i': case 'j': return 4;
    case 'd': case 'l': case 'm': case 'x': case 'y': return 8;
  }
  return 0;
}

// The type of elements that follows a text in a mangled name; 0 for one that is not known.
char type_after(const char *name, const char *text) {
  const char *type = strstr(name, text);
  if (type == nullptr) return 0;
  type += strlen(text);
  if (strncmp(type, "N3c104HalfE", 11) == 0) return 'e';
  if (strncmp(type, "N3c108BFloat16E", 15) == 0) return 'g';
  return *type != 0 && strchr("bahstijflmd", *type) != nullptr ? *type : 0;
}

// A place in a name, and the bytes of the last class before it. A substitution, such as S4_, is taken
// for that class.
struct place {
  const char *at;
  int last;
};

void skip_substitution(struct place *p) {
  p->at += strcspn(p->at, "_");
  if (*p->at != 0) p->at++;
}

// Reads a type, and returns its bytes; 0 for one that is not known.
int read_width(struct place *p) {
  if (*p->at == 'S') return skip_substitution(p), p->last;
  if (*p->at != 'N') return *p->at != 0 ? width_of(*p->at++) : 0;
  p->at++;
  if (*p->at == 'S') {
    skip_substitution(p);
  } else if (strncmp(p->at, "3c10", 4) == 0) {
    p->at += 4;
  }
  char *name;
  size_t length = strtoul(p->at, &name, 10);
  if (length == 0 || length > strlen(name)) return 0;
  p->at = name + length;
  auto is = [&](const char *text) { return length >= strlen(text) && strncmp(name, text, strlen(text)) == 0; };
  int width = is("Half") || is("BFloat16") ? 2 : is("Float8") || is("qint8") || is("quint") ? 1 : is("qint32") ? 4 : 0;
  if (is("complex") && *p->at == 'I') {
    p->at++;
    width = 2 * read_width(p);
    if (*p->at != 0) p->at++;
  }
  if (*p->at != 0) p->at++;
  if (width != 0) p->last = width;
  return width;
}

// A place in a name, with the last class before it.
struct place place_at(const char *name, const char *at) {
  struct place p = {name, 0};
  for (const char *next = name; (next = strstr(next, "N3c10")) != nullptr && next < at; next++) {
    p.at = next;
    read_width(&p);
  }
  p.at = at;
  return p;
}

// The last place behind a text before an end; null if the text is not there.
const char *last_behind(const char *name, const char *text, const char *end) {
  const char *found = nullptr;
  for (const char *at = name; (at = strstr(at, text)) != nullptr && at < end; at++) found = at + strlen(text);
  return found;
}

// The bytes of an element of what an elementwise kernel computes, by the type of its functor. They are
// too many for a lambda whose result is narrower than its operands.
int result_width(const char *name) {
  const int widest = 8;
  if (has(name, "CompareFunctorI") || has(name, "CompareEqFunctorI")) return 1;  // a bool
  const char *addresses = strstr(name, "rrayIPc");  // behind the functor
  const char *end = addresses != nullptr ? addresses : name + strlen(name);
  int width = 0;
  if (const char *at = last_behind(name, "naryFunctorI", end)) {  // of two operands and a result
    struct place p = place_at(name, at);
    for (int i = 0; i < 3; i++) width = read_width(&p);
  } else if (const char *at = last_behind(name, "EEF", end)) {  // a signature, which begins with the result
    struct place p = place_at(name, at);
    width = read_width(&p);
  } else if (const char *at = last_behind(name, "EUl", end)) {  // a lambda with its operands
    struct place p = place_at(name, at);
    while (*p.at != 0 && *p.at != 'E') {
      int operand = read_width(&p);
      if (operand > width) width = operand;
    }
  } else {  // a class with the type as its parameter
    for (const char *at = name; width == 0 && (at = strchr(at, 'I')) != nullptr && at < end; at++) {
      struct place p = place_at(name, at + 1);
      int parameter = read_width(&p);
      if (*p.at == 'E') width = parameter;
    }
  }
  return width != 0 ? width : widest;
}

// Whether the first arguments of a kernel are the number of elements, its functor, and addresses
// that begin with the result.
bool is_elementwise(const char *name) {
  return has(name, "29vectorized_elementwise_kernelI") || has(name, "27unrolled_elementwise_kernelI") ||
         has(name, "39vectorized_templated_elementwise_kernelI");
}

// Whether the operands of such a kernel are contiguous and of its own type.
bool is_plain(const char *name) {
  return has(name, "29vectorized_elementwise_kernelI") || (has(name, "15LoadWithoutCast") && !has(name, "16OffsetCalculatorI"));
}

// PyTorch's kernel for arange has one lambda for each type of elements, in the order in which its
// source lists the types.
char count_type(const char *name) {
  const char *function = strstr(name, "15arange_cuda_out");
  const char *lambda = function != nullptr ? strstr(function, "clEvENKUlvE") : nullptr;
  if (lambda == nullptr) return 0;
  lambda += strlen("clEvENKUlvE");
  int n = *lambda == '_' ? 0 : *lambda >= '0' && *lambda <= '7' ? *lambda - '0' + 1 : -1;
  return n < 0 ? 0 : "hailsdfeg"[n];
}

struct meaning typed(enum effect effect, char type) { return {effect, type, char(width_of(type)), false}; }

}  // namespace

struct meaning read_name(const char *name) {
  const char index[] = "29elementwise_kernel_with_indexI";
  char type;
  if (is_elementwise(name)) {
    if (is_plain(name) && (type = type_after(name, "11FillFunctorI")) != 0) return typed(EFFECT_FILL, type);
    if (is_plain(name) && (type = type_after(name, "CUDAFunctorOnSelf_addI")) != 0) return typed(EFFECT_ADD, type);
    return {EFFECT_CHANGE, 0, char(has(name, "13StoreWithCast") ? 0 : result_width(name)), false};
  }
  if (has(name, index) && (type = count_type(name)) != 0) {
    struct meaning m = typed(EFFECT_COUNT, type);
    m.wide = strstr(name, index)[strlen(index)] == 'l';
    return m;
  }
  if (has(name, "25multi_tensor_apply_kernelINS1_18TensorListMetadataILi1EEE") &&
      has(name, "Li1ELi1ELi0EEEJSt4plusI") && (type = type_after(name, "21BinaryOpScalarFunctorI")) != 0) {
    return typed(EFFECT_ADD_ALL, type);
  }
  return {EFFECT_NONE, 0, 0, false};
}
