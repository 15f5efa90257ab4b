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

// The descriptor that an attribute of another one has; null without one.
const struct descriptor *led_to(const struct descriptor *d, int name) {
  const struct attribute_set *a = find_attribute(d, name);
  return a == nullptr || a->type != ELEMENT_DESCRIPTOR ? nullptr : held(a, 0);
}

struct numbers numbers_of(const struct descriptor *d, int name) {
  const struct attribute_set *a = d == nullptr ? nullptr : find_attribute(d, name);
  if (a == nullptr || a->type == ELEMENT_DESCRIPTOR) return {};
  return {a->values, a->count};
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

void append(struct line *l, const char *name, struct numbers n) {
  for (int64_t i = 0; i < n.count && l->length < l->room; i++) {
    const char *between = i == 0 ? name : ",";
    l->length += size_t(snprintf(l->text + l->length, l->room - l->length, "%s%lld", between, (long long)n.values[i]));
  }
}

}  // namespace

struct descriptor *new_descriptor(int type) {
  struct descriptor *d = static_cast<struct descriptor *>(checked(malloc(sizeof *d)));
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
  int64_t *values = static_cast<int64_t *>(checked(calloc(size_t(count), sizeof *values)));
  for (int64_t i = 0; i < count; i++) {
    memcpy(&values[i], static_cast<const char *>(elements) + size_t(i) * width, width);
    if (type != ELEMENT_DESCRIPTOR || values[i] == 0) continue;
    __atomic_add_fetch(&static_cast<struct descriptor *>(pointer(uint64_t(values[i])))->references, 1, __ATOMIC_ACQ_REL);
  }
  struct attribute_set *a = const_cast<struct attribute_set *>(find_attribute(d, name));
  if (a == nullptr) {
    a = static_cast<struct attribute_set *>(checked(malloc(sizeof *a)));
    a->next = d->attributes;
    d->attributes = a;
  } else {
    drop_values(a);
  }
  a->name = name, a->type = type, a->count = count, a->values = values;
}

size_t write_row(const struct convolution *c, char *text, size_t room) {
  const char *operation = c->operation == DESCRIPTOR_FORWARD ? "forward"
                          : c->operation == DESCRIPTOR_DATA  ? "data"
                                                             : "filter";
  struct line l = {text, room, size_t(snprintf(text, room, "%s", operation))};
  append(&l, " type=", c->type);
  append(&l, " w=", c->filter.dimensions);
  append(&l, ":", c->filter.strides);
  append(&l, " x=", c->input.dimensions);
  append(&l, ":", c->input.strides);
  append(&l, " y=", c->output.dimensions);
  append(&l, ":", c->output.strides);
  append(&l, " pad=", c->pads_before);
  append(&l, ":", c->pads_after);
  append(&l, " stride=", c->strides);
  append(&l, " dilation=", c->dilations);
  return l.length < room ? l.length : 0;
}

size_t describe_convolution(const struct descriptor *d, char *text, size_t room) {
  const struct descriptor *graph = find_descriptor(d, DESCRIPTOR_GRAPH, DESCRIPTOR_GRAPH, 0);
  const struct descriptor *o = find_descriptor(graph, DESCRIPTOR_FORWARD, DESCRIPTOR_DATA, 0);
  if (o == nullptr) return 0;
  int first = o->type == DESCRIPTOR_FORWARD ? FORWARD_CONVOLUTION
              : o->type == DESCRIPTOR_DATA  ? DATA_CONVOLUTION
                                            : FILTER_CONVOLUTION;
  // The attributes of the three operations have the same order: filter, input, output.
  const struct descriptor *c = led_to(o, first), *w = led_to(o, first + 1);
  const struct descriptor *x = led_to(o, first + 2), *y = led_to(o, first + 3);
  if (c == nullptr || x == nullptr) return 0;
  struct convolution all = {
      o->type,
      numbers_of(x, TENSOR_TYPE),
      {numbers_of(w, TENSOR_DIMENSIONS), numbers_of(w, TENSOR_STRIDES)},
      {numbers_of(x, TENSOR_DIMENSIONS), numbers_of(x, TENSOR_STRIDES)},
      {numbers_of(y, TENSOR_DIMENSIONS), numbers_of(y, TENSOR_STRIDES)},
      numbers_of(c, CONVOLUTION_PRE_PADDINGS),
      numbers_of(c, CONVOLUTION_POST_PADDINGS),
      numbers_of(c, CONVOLUTION_STRIDES),
      numbers_of(c, CONVOLUTION_DILATIONS),
  };
  return write_row(&all, text, room);
}

const void *area_in(const struct descriptor *pack) {
  const struct attribute_set *a = pack == nullptr ? nullptr : find_attribute(pack, PACK_WORKSPACE);
  return a == nullptr ? nullptr : pointer(uint64_t(a->values[0]));
}
