// Descriptors of cuDNN's graph API: they remember what was set. A plan leads to its convolution
// over the engine configuration, the engine and the operation graph.
#include "dnn.h"

#include <stdio.h>

#include <initializer_list>

namespace {

const int deepest_descriptor = 8;

const struct attribute_set *find_attribute(const struct descriptor *d, int name) {
  for (const struct attribute_set *a = d->attributes; a != nullptr; a = a->next) {
    if (a->name == name) return a;
  }
  return nullptr;
}

struct descriptor *held(const struct attribute_set *a, int64_t i) {
  return static_cast<struct descriptor *>(pointer(uint64_t(a->values[i])));
}

// The first descriptor of a type that another one leads to.
const struct descriptor *find_descriptor(const struct descriptor *d, int first, int last, int depth) {
  if (d == nullptr || (d->type >= first && d->type <= last)) return d;
  if (depth == deepest_descriptor) return nullptr;
  for (const struct attribute_set *a = d->attributes; a != nullptr; a = a->next) {
    for (int64_t i = 0; a->type == ELEMENT_DESCRIPTOR && i < a->count; i++) {
      const struct descriptor *found = find_descriptor(held(a, i), first, last, depth + 1);
      if (found != nullptr) return found;
    }
  }
  return nullptr;
}

void drop_values(struct attribute_set *a) {
  for (int64_t i = 0; a->type == ELEMENT_DESCRIPTOR && i < a->count; i++) release_descriptor(held(a, i));
  free(a->values);
}

// A line of text with a fixed room.
struct line {
  char *text;
  size_t room, length;
};

void append(struct line *l, const char *name, const struct attribute_set *a) {
  for (int64_t i = 0; i < (a == nullptr ? 0 : a->count) && l->length < l->room; i++) {
    int n = snprintf(l->text + l->length, l->room - l->length, "%s%lld", i == 0 ? name : ",", (long long)a->values[i]);
    l->length += size_t(n);
  }
}

void append_tensor(struct line *l, char letter, const struct descriptor *operation, int name) {
  const struct attribute_set *a = find_attribute(operation, name);
  if (a == nullptr || a->count == 0) return;
  const char label[] = {' ', letter, '=', 0};
  append(l, label, find_attribute(held(a, 0), TENSOR_DIMENSIONS));
  append(l, ":", find_attribute(held(a, 0), TENSOR_STRIDES));
}

}  // namespace

struct descriptor *new_descriptor(int type) {
  struct descriptor *d = static_cast<struct descriptor *>(malloc(sizeof *d));
  *d = {type, 1, nullptr};
  return d;
}

void release_descriptor(struct descriptor *d) {
  if (d == nullptr || __atomic_sub_fetch(&d->references, 1, __ATOMIC_ACQ_REL) > 0) return;
  for (struct attribute_set *a = d->attributes, *next; a != nullptr; a = next) {
    next = a->next;
    drop_values(a);
    free(a);
  }
  free(d);
}

void set_attribute(struct descriptor *d, int name, int type, int64_t count, const void *elements) {
  if (elements == nullptr || count <= 0) return;
  size_t width = type == ELEMENT_DATA_TYPE ? 4 : type == ELEMENT_INT64 || type == ELEMENT_DESCRIPTOR || name == PACK_WORKSPACE ? 8 : 0;
  if (width == 0) return;  // nothing reads it
  int64_t *values = static_cast<int64_t *>(calloc(size_t(count), sizeof *values));
  for (int64_t i = 0; i < count; i++) {
    memcpy(&values[i], static_cast<const char *>(elements) + size_t(i) * width, width);
    if (type != ELEMENT_DESCRIPTOR || values[i] == 0) continue;
    __atomic_add_fetch(&static_cast<struct descriptor *>(pointer(uint64_t(values[i])))->references, 1, __ATOMIC_ACQ_REL);
  }
  struct attribute_set *a = const_cast<struct attribute_set *>(find_attribute(d, name));
  if (a == nullptr) {
    a = static_cast<struct attribute_set *>(malloc(sizeof *a));
    a->next = d->attributes;
    d->attributes = a;
  } else {
    drop_values(a);
  }
  a->name = name, a->type = type, a->count = count, a->values = values;
}

size_t describe_convolution(const struct descriptor *d, char *text, size_t room) {
  const struct descriptor *graph = find_descriptor(d, DESCRIPTOR_GRAPH, DESCRIPTOR_GRAPH, 0);
  const struct descriptor *o = find_descriptor(graph, DESCRIPTOR_FORWARD, DESCRIPTOR_DATA, 0);
  if (o == nullptr) return 0;
  int first = o->type == DESCRIPTOR_FORWARD ? FORWARD_CONVOLUTION
              : o->type == DESCRIPTOR_DATA  ? DATA_CONVOLUTION
                                            : FILTER_CONVOLUTION;
  const struct attribute_set *c = find_attribute(o, first), *x = find_attribute(o, first + 2);
  if (c == nullptr || x == nullptr) return 0;
  struct line l = {text, room, 0};
  const char *operation = o->type == DESCRIPTOR_FORWARD ? "forward" : o->type == DESCRIPTOR_DATA ? "data" : "filter";
  l.length = size_t(snprintf(text, room, "%s", operation));
  append(&l, " type=", find_attribute(held(x, 0), TENSOR_TYPE));
  // The attributes of the three operations have the same order: filter, input, output.
  append_tensor(&l, 'w', o, first + 1);
  append_tensor(&l, 'x', o, first + 2);
  append_tensor(&l, 'y', o, first + 3);
  append(&l, " pad=", find_attribute(held(c, 0), CONVOLUTION_PRE_PADDINGS));
  append(&l, ":", find_attribute(held(c, 0), CONVOLUTION_POST_PADDINGS));
  append(&l, " stride=", find_attribute(held(c, 0), CONVOLUTION_STRIDES));
  append(&l, " dilation=", find_attribute(held(c, 0), CONVOLUTION_DILATIONS));
  return l.length < room ? l.length : 0;
}

const void *area_in(const struct descriptor *pack) {
  const struct attribute_set *a = pack == nullptr ? nullptr : find_attribute(pack, PACK_WORKSPACE);
  return a == nullptr ? nullptr : pointer(uint64_t(a->values[0]));
}
