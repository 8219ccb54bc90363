// Thrust and CUB on numbers, tuples and structures with padding, compared with the host.
#include <thrust/device_vector.h>
#include <thrust/find.h>
#include <thrust/host_vector.h>
#include <thrust/iterator/zip_iterator.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/sort.h>
#include <thrust/tuple.h>
#include <thrust/unique.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <cub/device/device_segmented_reduce.cuh>
#include <numeric>
#include <vector>

namespace {

// 24 bytes, of which 10 are padding.
struct Record {
  char kind;
  int key;
  double weight;
  short tag;
};
struct ByKey {
  __host__ __device__ bool operator()(const Record& a, const Record& b) const {
    return a.key < b.key;
  }
};
struct HasKey {
  int key;
  __host__ __device__ bool operator()(const Record& r) const { return r.key == key; }
};
struct Sum {
  __host__ __device__ Record operator()(const Record& a, const Record& b) const {
    return {a.kind < b.kind ? a.kind : b.kind, a.key + b.key, a.weight + b.weight,
            a.tag < b.tag ? b.tag : a.tag};
  }
};
struct SameKind {
  __host__ __device__ bool operator()(const Record& a, const Record& b) const {
    return a.kind == b.kind;
  }
};

bool same(const Record& a, const Record& b) {
  return a.kind == b.kind && a.key == b.key && a.weight == b.weight && a.tag == b.tag;
}

constexpr int kCount = 3000;

unsigned draw() {
  static unsigned state = 12345;
  return state = state * 1664525u + 1013904223u;
}

std::vector<Record> records() {
  std::vector<Record> all(kCount);
  for (int i = 0; i < kCount; ++i) {
    all[i].kind = static_cast<char>('a' + i / 7 % 5);
    all[i].key = static_cast<int>(draw() >> 8) % 1000;
    all[i].weight = i % 16;
    all[i].tag = static_cast<short>(i);
  }
  return all;
}

// Writes each member, so that the padding between is never written.
__global__ void fill(Record* to, const char* kind, const int* key, const double* weight,
                     const short* tag) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= kCount) return;
  to[i].kind = kind[i];
  to[i].key = key[i];
  to[i].weight = weight[i];
  to[i].tag = tag[i];
}

thrust::device_vector<Record> on_device(const std::vector<Record>& all) {
  thrust::host_vector<char> kind;
  thrust::host_vector<int> key;
  thrust::host_vector<double> weight;
  thrust::host_vector<short> tag;
  for (const Record& r : all) {
    kind.push_back(r.kind);
    key.push_back(r.key);
    weight.push_back(r.weight);
    tag.push_back(r.tag);
  }
  const thrust::device_vector<char> d_kind = kind;
  const thrust::device_vector<int> d_key = key;
  const thrust::device_vector<double> d_weight = weight;
  const thrust::device_vector<short> d_tag = tag;
  Record* raw = nullptr;
  cudaMalloc(&raw, kCount * sizeof(Record));  // nothing writes the padding
  fill<<<(kCount + 255) / 256, 256>>>(raw, d_kind.data().get(), d_key.data().get(),
                                      d_weight.data().get(), d_tag.data().get());
  const auto begin = thrust::device_pointer_cast(raw);
  thrust::device_vector<Record> out(begin, begin + kCount);
  cudaFree(raw);
  return out;
}

bool all_same(const thrust::device_vector<Record>& got, const std::vector<Record>& want) {
  const thrust::host_vector<Record> here = got;
  return here.size() == want.size() && std::equal(here.begin(), here.end(), want.begin(), same);
}

bool sort_structures() {
  std::vector<Record> all = records();
  thrust::device_vector<Record> device = on_device(all);
  thrust::stable_sort(device.begin(), device.end(), ByKey());
  std::stable_sort(all.begin(), all.end(), ByKey());
  return all_same(device, all);
}

bool scan_structures() {
  std::vector<Record> all = records();
  thrust::device_vector<Record> device = on_device(all);
  thrust::inclusive_scan(device.begin(), device.end(), device.begin(), Sum());
  std::partial_sum(all.begin(), all.end(), all.begin(), Sum());
  return all_same(device, all);
}

bool reduce_structures() {
  const std::vector<Record> all = records();
  const thrust::device_vector<Record> device = on_device(all);
  const Record got = thrust::reduce(device.begin() + 1, device.end(), all[0], Sum());
  return same(got, std::accumulate(all.begin() + 1, all.end(), all[0], Sum()));
}

bool unique_structures() {
  std::vector<Record> all = records();
  thrust::device_vector<Record> device = on_device(all);
  device.erase(thrust::unique(device.begin(), device.end(), SameKind()), device.end());
  all.erase(std::unique(all.begin(), all.end(), SameKind()), all.end());
  return all_same(device, all);
}

bool find_structures() {
  const std::vector<Record> all = records();
  const thrust::device_vector<Record> device = on_device(all);
  for (const int key : {all[2500].key, all[0].key, -1}) {
    const auto got = thrust::find_if(device.begin(), device.end(), HasKey{key}) - device.begin();
    const auto want = std::find_if(all.begin(), all.end(), HasKey{key}) - all.begin();
    if (got != want) return false;
  }
  return true;
}

bool sort_tuples() {
  std::vector<int> key(kCount);
  std::vector<char> value(kCount);
  for (int i = 0; i < kCount; ++i) {
    key[i] = static_cast<int>(draw() >> 16);
    value[i] = static_cast<char>(i);
  }
  thrust::device_vector<int> d_key(key.begin(), key.end());
  thrust::device_vector<char> d_value(value.begin(), value.end());
  const auto begin = thrust::make_zip_iterator(d_key.begin(), d_value.begin());
  thrust::sort(begin, begin + kCount);
  std::vector<std::pair<int, char>> want(kCount);
  for (int i = 0; i < kCount; ++i) want[i] = {key[i], value[i]};
  std::sort(want.begin(), want.end());
  const thrust::host_vector<int> h_key = d_key;
  const thrust::host_vector<char> h_value = d_value;
  for (int i = 0; i < kCount; ++i) {
    if (h_key[i] != want[i].first || h_value[i] != want[i].second) return false;
  }
  return true;
}

bool reduce_by_key() {
  thrust::host_vector<short> key(kCount);
  thrust::host_vector<double> value(kCount);
  std::vector<double> want;
  for (int i = 0; i < kCount; ++i) {
    key[i] = static_cast<short>(i / 37);
    value[i] = i % 11;
    if (i % 37 == 0) want.push_back(0);
    want.back() += value[i];
  }
  const thrust::device_vector<short> d_key = key;
  const thrust::device_vector<double> d_value = value;
  thrust::device_vector<short> keys(kCount);
  thrust::device_vector<double> sums(kCount);
  const auto ends = thrust::reduce_by_key(d_key.begin(), d_key.end(), d_value.begin(), keys.begin(),
                                          sums.begin());
  sums.resize(ends.second - sums.begin());
  const thrust::host_vector<double> got = sums;
  return got.size() == want.size() && std::equal(got.begin(), got.end(), want.begin());
}

bool sort_numbers() {
  thrust::host_vector<unsigned> key(kCount), value(kCount);
  for (int i = 0; i < kCount; ++i) key[i] = draw() >> 4, value[i] = i;
  thrust::device_vector<unsigned> d_key = key, d_value = value;
  thrust::sort_by_key(d_key.begin(), d_key.end(), d_value.begin());
  const thrust::host_vector<unsigned> got = d_key, order = d_value;
  for (int i = 0; i < kCount; ++i) {
    if (got[i] != key[order[i]] || (i > 0 && got[i - 1] > got[i])) return false;
  }
  return true;
}

bool segmented_reduce() {
  thrust::host_vector<float> value(kCount);
  thrust::host_vector<int> offset;
  for (int i = 0; i < kCount; ++i) value[i] = static_cast<float>(i % 9);
  for (int at = 0; at < kCount; at += 1 + static_cast<int>(draw() >> 24)) offset.push_back(at);
  offset.push_back(kCount);
  const int segments = static_cast<int>(offset.size()) - 1;
  const thrust::device_vector<float> d_value = value;
  const thrust::device_vector<int> d_offset = offset;
  thrust::device_vector<float> sums(segments);
  std::size_t bytes = 0;
  void* scratch = nullptr;
  for (int pass = 0; pass < 2; ++pass) {
    cub::DeviceSegmentedReduce::Sum(scratch, bytes, d_value.begin(), sums.begin(), segments,
                                    d_offset.begin(), d_offset.begin() + 1);
    if (pass == 0) cudaMalloc(&scratch, bytes);
  }
  cudaFree(scratch);
  const thrust::host_vector<float> got = sums;
  for (int s = 0; s < segments; ++s) {
    if (got[s] != std::accumulate(&value[offset[s]], &value[0] + offset[s + 1], 0.0f)) return false;
  }
  return true;
}

}  // namespace

int main() {
  const struct {
    const char* name;
    bool (*run)();
  } kAll[] = {{"sort structures", sort_structures},     {"scan structures", scan_structures},
              {"reduce structures", reduce_structures}, {"unique structures", unique_structures},
              {"find structures", find_structures},     {"sort tuples", sort_tuples},
              {"reduce by key", reduce_by_key},         {"sort numbers", sort_numbers},
              {"segmented reduce", segmented_reduce}};
  for (const auto& one : kAll) std::printf("%s %s\n", one.name, one.run() ? "ok" : "WRONG");
  return 0;
}
