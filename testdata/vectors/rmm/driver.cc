// Answers of RMM's memory resources to a trace, over a stand-in for the CUDA runtime.
//
// The stand-in hands out addresses from 0x7f0000000000 upwards in steps of 2 MiB and charges sizes
// rounded up to 256 bytes, as device/sim does. Nothing reads or writes the memory. Events are
// numbered in the order of their creation, so RMM's lists of streams have that order too.
//
// Usage: driver pool CAPACITY INITIAL LIMIT < TRACE
//        driver arena CAPACITY BYTES < TRACE
//        driver binning CAPACITY INITIAL LIMIT MIN_BIN MAX_BIN BLOCKS < TRACE
// INITIAL and BYTES may be "half" for half of the free memory, LIMIT 0 for none.

#include <rmm/aligned.hpp>
#include <rmm/cuda_device.hpp>
#include <rmm/mr/arena_memory_resource.hpp>
#include <rmm/mr/binning_memory_resource.hpp>
#include <rmm/mr/cuda_memory_resource.hpp>
#include <rmm/mr/fixed_size_memory_resource.hpp>
#include <rmm/mr/pool_memory_resource.hpp>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace {

constexpr std::uintptr_t base = 0x7f0000000000;
constexpr std::size_t step = 2 << 20;

std::size_t capacity, charged;
std::uintptr_t top = base;
std::vector<std::pair<std::uintptr_t, std::size_t>> regions;
std::uintptr_t events;
long records, waits, stream_syncs, device_syncs, refused;

}  // namespace

extern "C" {
cudaError_t cudaMalloc(void** at, std::size_t n)
{
  n = (n + 255) / 256 * 256;
  if (n > capacity - charged) {
    refused++;
    return cudaErrorMemoryAllocation;
  }
  charged += n;
  *at = reinterpret_cast<void*>(top);
  regions.emplace_back(top, n);
  top = (top + n + step - 1) / step * step;
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total)
{
  *free = capacity - charged;
  *total = capacity;
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* e, unsigned)
{
  *e = reinterpret_cast<cudaEvent_t>(++events * 64);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { return records++, cudaSuccess; }
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return waits++, cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t) { return stream_syncs++, cudaSuccess; }
cudaError_t cudaDeviceSynchronize() { return device_syncs++, cudaSuccess; }
cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaFree(void*) { return cudaSuccess; }
cudaError_t cudaGetDevice(int* d) { return *d = 0, cudaSuccess; }
cudaError_t cudaSetDevice(int) { return cudaSuccess; }
cudaError_t cudaGetDeviceCount(int* n) { return *n = 1, cudaSuccess; }
cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaPeekAtLastError() { return cudaSuccess; }
const char* cudaGetErrorName(cudaError_t) { return "error"; }
const char* cudaGetErrorString(cudaError_t) { return "error"; }
}

namespace {

using pool = rmm::mr::pool_memory_resource<rmm::mr::cuda_memory_resource>;
using arena = rmm::mr::arena_memory_resource<rmm::mr::cuda_memory_resource>;
using bin = rmm::mr::fixed_size_memory_resource<pool>;
using binning = rmm::mr::binning_memory_resource<pool>;

struct block {
  void* at;
  std::size_t size;
  rmm::cuda_stream_view stream;
};

// answer reads a trace from standard input and prints a line for each request. granted returns the
// bytes of the block for a request.
void answer(rmm::mr::device_memory_resource& mr, std::function<std::size_t(std::size_t)> granted)
{
  std::map<unsigned long, block> live;
  char line[256];
  while (std::fgets(line, sizeof line, stdin)) {
    unsigned long id, size, stream = 0;
    if (std::sscanf(line, "a %lu %lu stream=%lu", &id, &size, &stream) >= 2) {
      rmm::cuda_stream_view on{reinterpret_cast<cudaStream_t>(stream << 12)};
      try {
        void* at = mr.allocate(on, size);
        live.insert_or_assign(id, block{at, size, on});
        std::printf("%lu %lu %lu\n", id, reinterpret_cast<std::uintptr_t>(at) - base, granted(size));
      } catch (rmm::bad_alloc const&) {
        std::printf("%lu OOM\n", id);
      }
    } else if (std::sscanf(line, "f %lu", &id) == 1) {
      if (auto it = live.find(id); it != live.end()) {
        mr.deallocate(it->second.stream, it->second.at, it->second.size);
        live.erase(it);
      }
    }
  }
  for (auto const& [at, size] : regions) std::printf("R %lu %lu\n", at - base, size);
  std::printf("D %ld %ld %ld %ld %ld\n", refused, records, waits, stream_syncs, device_syncs);
}

std::optional<std::size_t> number(std::string const& text)
{
  if (text == "half") return rmm::percent_of_free_device_memory(50);
  auto const n = std::stoull(text);
  return n == 0 ? std::nullopt : std::make_optional<std::size_t>(n);
}

}  // namespace

int main(int, char** args)
{
  std::string const kind = args[1];
  capacity = std::stoull(args[2]);
  auto const quantum = [](std::size_t n) { return rmm::align_up(n, rmm::CUDA_ALLOCATION_ALIGNMENT); };
  rmm::mr::cuda_memory_resource cuda;
  if (kind == "arena") {
    auto const text = std::string(args[3]);
    arena mr(&cuda, text == "half" ? std::nullopt : number(text));
    answer(mr, quantum);
    return 0;
  }
  pool upstream(&cuda, number(args[3]).value_or(0), number(args[4]));
  if (kind == "pool") {
    answer(upstream, quantum);
    return 0;
  }
  auto const smallest = std::stoull(args[5]), largest = std::stoull(args[6]), blocks = std::stoull(args[7]);
  binning mr(&upstream);
  std::vector<std::unique_ptr<bin>> bins;
  for (auto size = smallest; size <= largest; size *= 2) {
    bins.push_back(std::make_unique<bin>(&upstream, size, blocks));
    mr.add_bin(size, bins.back().get());
  }
  answer(mr, [&](std::size_t n) {
    for (auto size = smallest; size <= largest; size *= 2)
      if (n <= size) return static_cast<std::size_t>(size);
    return quantum(n);
  });
  return 0;
}
