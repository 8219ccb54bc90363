#include "util/thread_stop.h"

#include <gtest/gtest.h>

#include <thread>

#include "util/stop.h"

namespace assay {
namespace {

TEST(ThreadStop, AThreadIsAskedForAsLongAsTheRequestLives) {
  bool asked = false;
  {
    const ThreadStop stop([&] { return asked; });
    EXPECT_NO_THROW(check_stop());
    asked = true;
    EXPECT_THROW(check_stop(), Stopped);
    std::thread([] { EXPECT_NO_THROW(check_stop()); }).join();
  }
  EXPECT_NO_THROW(check_stop());
}

}  // namespace
}  // namespace assay
