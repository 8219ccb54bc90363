// libFuzzer target of fat binaries, which come from a submission's library, and of the log that its
// process writes: any bytes are accepted or refused, and a text that is found lies in the
// container.
#include <cstddef>
#include <span>
#include <vector>

#include "fuzz/promises.h"
#include "sim/runtime/fat_binary.h"
#include "sim/runtime/run_log.h"

namespace {

using namespace assay;

void check_container(std::span<const std::byte> container, std::uint32_t newest) {
  try {
    const sim::PtxImage image = sim::find_ptx(container, newest);
    const auto* begin = reinterpret_cast<const char*>(container.data());
    fuzz::require(image.text.data() >= begin &&
                      image.text.data() + image.text.size() <= begin + container.size(),
                  "the text lies in the container");
    fuzz::require(image.architecture <= newest, "the device can execute it");
    fuzz::require(image.text.find('\0') == std::string_view::npos, "texts end at their NUL");
  } catch (const sim::FatBinaryError&) {
  }
}

void check_log(std::string_view log) {
  const sim::RunSummary summary = sim::summarise(log);
  std::size_t bytes = summary.not_loaded.size();
  for (const auto* texts : {&summary.unsupported, &summary.notes}) {
    for (const std::string& text : *texts) bytes += text.size();
  }
  fuzz::require(bytes <= log.size(), "nothing is read twice");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input in(data, size);
  const std::uint32_t newest = in.take<std::uint8_t>();
  const std::string_view rest = in.rest();
  // An exact-size copy, so that an access one byte too far is noticed.
  const std::vector<std::byte> container(
      reinterpret_cast<const std::byte*>(rest.data()),
      reinterpret_cast<const std::byte*>(rest.data()) + rest.size());
  check_container(container, newest);
  check_log(rest);
  return 0;
}
