// The parts of cuDNN's stand-in: descriptors of the graph API, and the size of work areas.
#ifndef VRAMYARD_DNN_H
#define VRAMYARD_DNN_H

#include "standin.h"

// Attributes of the graph API that are read, with cuDNN's numbers.
enum attribute : int {
  CONVOLUTION_DILATIONS = 102,
  CONVOLUTION_STRIDES = 103,
  CONVOLUTION_POST_PADDINGS = 104,
  CONVOLUTION_PRE_PADDINGS = 105,
  HEURISTICS_GRAPH = 201,
  HEURISTICS_RESULTS = 202,
  CONFIG_ENGINE = 300,
  CONFIG_SHARED_MEMORY = 304,
  PLAN_WORKSPACE = 402,
  FORWARD_CONVOLUTION = 702,  // then the filter, the input and the output
  DATA_CONVOLUTION = 708,
  FILTER_CONVOLUTION = 714,
  GRAPH_OPERATIONS = 801,
  TENSOR_TYPE = 901,
  TENSOR_DIMENSIONS = 902,
  TENSOR_STRIDES = 903,
  PACK_WORKSPACE = 1003,
  ENGINE_INDEX = 1301,
};

// Types of descriptors and of the elements of attributes.
enum descriptor_type : int {
  DESCRIPTOR_FORWARD = 10,
  DESCRIPTOR_FILTER = 11,
  DESCRIPTOR_DATA = 12,
  DESCRIPTOR_GRAPH = 15,
};
enum element_type : int { ELEMENT_DATA_TYPE = 1, ELEMENT_INT64 = 3, ELEMENT_DESCRIPTOR = 15 };

// An attribute that was set: numbers, or other descriptors, each of which it holds.
struct attribute_set {
  int name, type;
  int64_t count;
  int64_t *values;
  struct attribute_set *next;
};

// A descriptor, which holds a reference to itself until it is destroyed.
struct descriptor {
  int type, references;
  struct attribute_set *attributes;
};

struct descriptor *new_descriptor(int type);
void release_descriptor(struct descriptor *d);
// Elements of types that nothing reads are ignored.
void set_attribute(struct descriptor *d, int name, int type, int64_t count, const void *elements);

// Numbers that a descriptor has; none for an attribute that was not set.
struct numbers {
  const int64_t *values;
  int64_t count;
};

// A convolution as cuDNN is asked for it.
struct convolution {
  int operation;  // the type of its descriptor in the graph API
  struct numbers type;
  struct {
    struct numbers dimensions, strides;
  } filter, input, output;
  struct numbers pads_before, pads_after, strides, dilations;
};

// Writes the line that a table of work areas has for a convolution, without the bytes. It returns the
// length; 0 if there is not enough room.
size_t write_row(const struct convolution *c, char *text, size_t room);

// The same for the convolution that a descriptor leads to; 0 without one.
size_t describe_convolution(const struct descriptor *d, char *text, size_t room);

// The work area in a pack of arguments; null without one.
const void *area_in(const struct descriptor *pack);

#endif
