// Functions of the driver API that the runtime offers: how they are found, and tensor maps.
#include <array>
#include <cstring>

#include "sim/runtime/driver_api.h"
#include "sim/runtime/runtime_fixture.h"

namespace assay::sim::cuda {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class DriverApi : public RuntimeTest {
 protected:
  CUresult encode_map(cuuint32_t rank = 2) {
    return cuTensorMapEncodeTiled(&map_, CUtensorMapDataType{7}, rank, address_, size_.data(),
                                  strides_.data(), box_.data(), steps_.data(),
                                  CUtensorMapInterleave{0}, CUtensorMapSwizzle{1},
                                  CUtensorMapL2promotion{2}, CUtensorMapFloatOOBfill{0});
  }

  CUtensorMap map_{};
  void* address_ = reinterpret_cast<void*>(0x2000'0000'0100);
  std::array<cuuint64_t, 2> size_{8, 9};
  std::array<cuuint64_t, 1> strides_{64};
  std::array<cuuint32_t, 2> box_{4, 5}, steps_{1, 2};
};

TEST_F(DriverApi, FunctionsAreFoundByName) {
  void* function = nullptr;
  auto status = cudaDriverEntryPointSymbolNotFound;
  EXPECT_EQ(cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &function, 0, &status), cudaSuccess);
  EXPECT_EQ(status, cudaDriverEntryPointSuccess);
  EXPECT_EQ(function, reinterpret_cast<void*>(&cuTensorMapEncodeTiled));
  function = nullptr;
  EXPECT_EQ(
      cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, 0, nullptr),
      cudaSuccess);
  EXPECT_NE(function, nullptr);
  EXPECT_EQ(
      cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 11080, 0, &status),
      cudaSuccess);
  EXPECT_EQ(status, cudaDriverEntryPointVersionNotSufficent);
  EXPECT_EQ(function, nullptr);
  EXPECT_EQ(cudaGetDriverEntryPoint(nullptr, &function, 0, &status), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetDriverEntryPoint("cuInit", nullptr, 0, &status), cudaErrorInvalidValue);
  EXPECT_THAT(Runtime::instance().unsupported_api(), IsEmpty());
}

TEST_F(DriverApi, OthersAreRefusedByName) {
  void* function = nullptr;
  EXPECT_EQ(cudaGetDriverEntryPoint("cuGreenCtxCreate", &function, 0, nullptr),
            cudaErrorNotSupported);
  EXPECT_EQ(function, nullptr);
  EXPECT_THAT(Runtime::instance().unsupported_api(), ElementsAre("cuGreenCtxCreate"));
}

TEST_F(DriverApi, TheDeviceMakesTensorMaps) {
  state_.tensor_reply.map[5] = std::byte{77};
  ASSERT_EQ(encode_map(), CUDA_SUCCESS);
  EXPECT_EQ(std::memcmp(&map_, state_.tensor_reply.map.data(), sizeof map_), 0);
  ASSERT_EQ(state_.tensors.size(), 1u);
  const TensorMapRequest& r = state_.tensors[0];
  EXPECT_EQ(r.element, 7u);
  EXPECT_EQ(r.rank, 2u);
  EXPECT_EQ(r.interleave, 0u);
  EXPECT_EQ(r.swizzle, 1u);
  EXPECT_EQ(r.l2_promotion, 2u);
  EXPECT_EQ(r.address, 0x2000'0000'0100u);
  EXPECT_THAT(r.size, ElementsAre(8, 9, 0, 0, 0));
  EXPECT_THAT(r.stride_bytes, ElementsAre(64, 0, 0, 0));
  EXPECT_THAT(r.box, ElementsAre(4, 5, 0, 0, 0));
  EXPECT_THAT(r.step, ElementsAre(1, 2, 0, 0, 0));
}

TEST_F(DriverApi, RanksThatThereAreNotReachNobody) {
  EXPECT_EQ(encode_map(0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(encode_map(6), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuTensorMapEncodeTiled(nullptr, {}, 1, address_, size_.data(), nullptr, box_.data(),
                                   steps_.data(), {}, {}, {}, {}),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_THAT(state_.tensors, IsEmpty());
}

TEST_F(DriverApi, RefusedTensorMaps) {
  state_.tensor_reply.status = TensorMapReply::Status::invalid;
  EXPECT_EQ(encode_map(), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(last(), cudaSuccess) << "the driver's errors are not the runtime's";
  state_.tensor_reply = {TensorMapReply::Status::unsupported, "of type X", {}};
  EXPECT_EQ(encode_map(), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_THAT(Runtime::instance().unsupported_api(),
              ElementsAre("cuTensorMapEncodeTiled: a tensor map of type X"));
}

}  // namespace
}  // namespace assay::sim::cuda
