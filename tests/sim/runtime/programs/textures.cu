// Textures of one to three dimensions, each against the same fetch on the host.
#include <cuda_runtime.h>

#include <cmath>
#include <cstdio>
#include <cstring>

#define CHECK(call)                                      \
  if (const cudaError_t e = (call); e != cudaSuccess) {  \
    std::printf("%s: %s\n", #call, cudaGetErrorName(e)); \
    return 1;                                            \
  }

constexpr int kWidth = 16, kHeight = 8, kDepth = 4;

__global__ void by_number(cudaTextureObject_t t, int* out) {
  const int4 texel = tex1Dfetch<int4>(t, static_cast<int>(threadIdx.x));
  out[threadIdx.x] = texel.x + 10 * texel.w;
}

__global__ void smooth(cudaTextureObject_t t, float* out) {
  const float x = (static_cast<float>(threadIdx.x) + 0.5f) / 32;
  out[threadIdx.x] = tex2D<float>(t, 2 * x - 0.5f, x);
}

__global__ void colours(cudaTextureObject_t t, float4* out) {
  out[threadIdx.x] = tex1D<float4>(t, static_cast<float>(threadIdx.x) + 0.25f);
}

__global__ void box(cudaTextureObject_t t, float* out) {
  const auto i = static_cast<float>(threadIdx.x);
  out[threadIdx.x] = tex3D<float>(t, i / 2, i / 4, i / 8);
}

float plane(int x, int y) { return static_cast<float>(x + 100 * y); }

// The texel of a texture that repeats.
int wrapped(int i, int n) { return (i % n + n) % n; }

float smooth_on_host(float x, float y) {
  x = x * kWidth - 0.5f;
  y = y * kHeight - 0.5f;
  const float i = std::floor(x), j = std::floor(y), a = x - i, b = y - j;
  const auto at = [&](int dx, int dy) {
    return plane(wrapped(static_cast<int>(i) + dx, kWidth),
                 wrapped(static_cast<int>(j) + dy, kHeight));
  };
  return (1 - a) * (1 - b) * at(0, 0) + a * (1 - b) * at(1, 0) + (1 - a) * b * at(0, 1) +
         a * b * at(1, 1);
}

int main() {
  // Linear memory.
  int4 numbers[32];
  for (int i = 0; i < 32; ++i) numbers[i] = {i, 0, 0, 2 * i};
  void* memory = nullptr;
  CHECK(cudaMalloc(&memory, sizeof numbers));
  CHECK(cudaMemcpy(memory, numbers, sizeof numbers, cudaMemcpyHostToDevice));
  cudaResourceDesc linear = {};
  linear.resType = cudaResourceTypeLinear;
  linear.res.linear = {memory, cudaCreateChannelDesc<int4>(), 30 * sizeof(int4)};
  cudaTextureDesc plain = {};
  cudaTextureObject_t texture = 0;
  CHECK(cudaCreateTextureObject(&texture, &linear, &plain, nullptr));
  int *sums = nullptr, got[32];
  CHECK(cudaMalloc(&sums, sizeof got));
  by_number<<<1, 32>>>(texture, sums);
  CHECK(cudaMemcpy(got, sums, sizeof got, cudaMemcpyDeviceToHost));
  int wrong = 0;
  for (int i = 0; i < 32; ++i) wrong += got[i] != (i < 30 ? 21 * i : 0);
  std::printf("linear memory: %d wrong\n", wrong);

  // A plane that repeats, interpolated.
  float image[kHeight][kWidth], line[32];
  for (int y = 0; y < kHeight; ++y) {
    for (int x = 0; x < kWidth; ++x) image[y][x] = plane(x, y);
  }
  const cudaChannelFormatDesc single = cudaCreateChannelDesc<float>();
  cudaArray_t array = nullptr;
  CHECK(cudaMallocArray(&array, &single, kWidth, kHeight));
  CHECK(cudaMemcpy2DToArray(array, 0, 0, image, sizeof image[0], sizeof image[0], kHeight,
                            cudaMemcpyHostToDevice));
  cudaResourceDesc of_array = {};
  of_array.resType = cudaResourceTypeArray;
  of_array.res.array.array = array;
  cudaTextureDesc repeated = {};
  repeated.addressMode[0] = repeated.addressMode[1] = cudaAddressModeWrap;
  repeated.filterMode = cudaFilterModeLinear;
  repeated.normalizedCoords = 1;
  CHECK(cudaCreateTextureObject(&texture, &of_array, &repeated, nullptr));
  float* values = nullptr;
  CHECK(cudaMalloc(&values, sizeof line));
  smooth<<<1, 32>>>(texture, values);
  CHECK(cudaMemcpy(line, values, sizeof line, cudaMemcpyDeviceToHost));
  wrong = 0;
  for (int i = 0; i < 32; ++i) {
    const float x = (static_cast<float>(i) + 0.5f) / 32;
    wrong += std::fabs(line[i] - smooth_on_host(2 * x - 0.5f, x)) > 2.0f;  // weights of 8 bits
  }
  std::printf("interpolated: %d wrong\n", wrong);
  CHECK(cudaDestroyTextureObject(texture));
  CHECK(cudaFreeArray(array));

  // Bytes as fractions, and the colour beyond the edge.
  uchar4 pixels[kWidth];
  for (int x = 0; x < kWidth; ++x) pixels[x] = {static_cast<unsigned char>(x), 0, 51, 255};
  const cudaChannelFormatDesc bytes = cudaCreateChannelDesc<uchar4>();
  CHECK(cudaMallocArray(&array, &bytes, kWidth));
  CHECK(cudaMemcpy2DToArray(array, 0, 0, pixels, sizeof pixels, sizeof pixels, 1,
                            cudaMemcpyHostToDevice));
  of_array.res.array.array = array;
  cudaTextureDesc framed = {};
  framed.addressMode[0] = cudaAddressModeBorder;
  framed.readMode = cudaReadModeNormalizedFloat;
  framed.borderColor[3] = 0.75f;
  CHECK(cudaCreateTextureObject(&texture, &of_array, &framed, nullptr));
  float4 *blended = nullptr, seen[32];
  CHECK(cudaMalloc(&blended, sizeof seen));
  colours<<<1, 32>>>(texture, blended);
  CHECK(cudaMemcpy(seen, blended, sizeof seen, cudaMemcpyDeviceToHost));
  wrong = 0;
  for (int i = 0; i < 32; ++i) {
    const float4 expected =
        i < kWidth ? float4{static_cast<float>(i) / 255, 0, 0.2f, 1} : float4{0, 0, 0, 0.75f};
    wrong += std::memcmp(&seen[i], &expected, sizeof expected) != 0;
  }
  std::printf("colours: %d wrong\n", wrong);

  // Three dimensions; the last row and slice repeat.
  static float cube[kDepth][kHeight][kWidth];
  for (int z = 0; z < kDepth; ++z) {
    for (int y = 0; y < kHeight; ++y) {
      for (int x = 0; x < kWidth; ++x) cube[z][y][x] = plane(x, y) + 10000.0f * z;
    }
  }
  cudaArray_t volume = nullptr;
  CHECK(cudaMalloc3DArray(&volume, &single, cudaExtent{kWidth, kHeight, kDepth}));
  cudaMemcpy3DParms all = {};
  all.srcPtr = make_cudaPitchedPtr(cube, sizeof cube[0][0], kWidth, kHeight);
  all.dstArray = volume;
  all.extent = {kWidth, kHeight, kDepth};
  all.kind = cudaMemcpyHostToDevice;
  CHECK(cudaMemcpy3D(&all));
  of_array.res.array.array = volume;
  cudaTextureDesc clamped = {};
  for (auto& mode : clamped.addressMode) mode = cudaAddressModeClamp;
  CHECK(cudaCreateTextureObject(&texture, &of_array, &clamped, nullptr));
  box<<<1, 32>>>(texture, values);
  CHECK(cudaMemcpy(line, values, sizeof line, cudaMemcpyDeviceToHost));
  wrong = 0;
  for (int i = 0; i < 32; ++i) {
    const int x = i / 2, y = i / 4 < kHeight ? i / 4 : kHeight - 1;
    const int z = i / 8 < kDepth ? i / 8 : kDepth - 1;
    wrong += line[i] != cube[z][y][x];
  }
  std::printf("three dimensions: %d wrong\n", wrong);
}
