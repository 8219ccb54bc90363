// What a challenge author implements on the trusted side: the layout of each case, its inputs, the
// fp64 reference and the check. Runs in the harness only; a submission never sees this code.
//
// Life of a case:  plan -> fill -> reference -> (the worker runs every phase) -> check
// plan and fill depend only on the spec and the seeds, so a case can be replayed alone.
//
// An output is due at the end of one phase. There the harness stops the worker, copies the output
// and judges the copy, so later phases cannot change it.
//
// Every function may be called from several threads at once for different cases.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "assay/abi.h"
#include "assay/case.h"
#include "assay/dtype.h"
#include "assay/error.h"
#include "assay/secret.h"

namespace assay {

enum class Role : std::uint8_t {
  input,   // read-only in the worker; its contents appear when its phase starts
  output,  // filled with NaN poison before the first phase; judged as it was when due
  inout,   // writable in the worker; fill() gives the first contents; a call that has to fail must
           // leave it unchanged
};

// Due at the end of the timed phase in a timed case, else at the end of the last phase.
inline constexpr int kDefaultDue = -1;

// A run of adjacent elements of a buffer.
struct Piece {
  std::int64_t first = 0, count = 0;
};

struct BufferPlan {
  std::string name;
  Dtype dtype = Dtype::f32;
  std::vector<std::int64_t> shape{};  // row-major; any dimension may be 0
  Role role = Role::input;
  // Inputs: hidden from the worker until this phase starts; forever if the case has no such phase.
  int phase = 0;
  // Inputs: zeros once this phase has ended, so that a submission cannot go on reading what it had
  // to copy; -1: never. Not for sparse buffers.
  int until = -1;
  int due = kDefaultDue;  // outputs: judged as they are when this phase ends
  bool null = false;      // the worker sees NULL, and so does the challenge ...
  bool withheld = false;  // ... but for fill(), which has memory for it
  bool canary = true;     // outputs: bytes around the buffer must survive
  bool compared = true;   // outputs: must agree bitwise between two runs of a deterministic case
  int sized_by = -1;      // outputs: the handle of an i64 output that holds how many bytes of this
                          // one the submission asked for; the bytes beyond must survive too
  bool host = false;      // stays in host memory when the submission runs on a device
  // Not empty: the buffer is sparse and holds only these elements, in ascending order. Between them
  // is address space without memory, to test offsets that do not fit in 32 bits; any access there
  // faults. Only for first-phase inputs and for outputs, in cases on the host that are not timed,
  // measured or run twice.
  std::vector<Piece> pieces{};

  std::int64_t elements() const {
    std::int64_t n = 1;
    for (auto d : shape) n *= d;
    return n;
  }
  std::size_t bytes() const { return static_cast<std::size_t>(elements()) * size_of(dtype); }
};

// A case ready to run. The position of a buffer in `buffers` is its handle on both sides.
struct CasePlan {
  std::int32_t entry = 0;         // which of the adapter's routines
  std::vector<std::byte> params;  // plain data, handed to the adapter verbatim
  std::vector<BufferPlan> buffers;
  int phases = 1;        // the adapter is called once per phase, in order
  int timed_phase = 0;   // the one whose time counts
  bool aligned = false;  // base pointers on 256 bytes; else on the element size only

  // The phase at whose end an output is due. `timed`: this is a timed case.
  int due_phase(const BufferPlan& buffer, bool timed) const {
    if (buffer.due != kDefaultDue) return buffer.due;
    return timed ? timed_phase : phases - 1;
  }

  // Appends a buffer. Its position is its handle. Throws ChallengeError if it is declared out of
  // order.
  void add(int handle, BufferPlan buffer) {
    if (handle < 0 || static_cast<std::size_t>(handle) != buffers.size()) {
      throw ChallengeError("buffer " + buffer.name + " has handle " + std::to_string(handle) +
                           " but is declared at position " + std::to_string(buffers.size()));
    }
    buffers.push_back(std::move(buffer));
  }

  // Marks buffers that stay in host memory; unknown names are ignored.
  void keep_on_host(std::initializer_list<std::string_view> names) {
    for (BufferPlan& buffer : buffers) {
      for (const std::string_view name : names) buffer.host |= buffer.name == name;
    }
  }

  // Withholds buffers: the submission receives null pointers. fill() fills them all the same, so
  // that everything else is drawn as it is where they are passed. Throws ChallengeError, a fault of
  // the spec, if the plan has no buffer of that name.
  void pass_as_null(const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      const auto is_it = [&](const BufferPlan& buffer) { return buffer.name == name; };
      const auto found = std::find_if(buffers.begin(), buffers.end(), is_it);
      if (found == buffers.end()) throw ChallengeError("no buffer is called " + name);
      found->null = found->withheld = true;
    }
  }

  // Total bytes of the buffers with these names, without those passed as null.
  double bytes_of(std::initializer_list<std::string_view> names) const {
    double sum = 0;
    for (const BufferPlan& buffer : buffers) {
      for (const std::string_view name : names) {
        if (buffer.name == name && !buffer.null) sum += static_cast<double>(buffer.bytes());
      }
    }
    return sum;
  }

  template <class T>
  void set_params(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    const auto* p = reinterpret_cast<const std::byte*>(&value);
    params.assign(p, p + sizeof(T));
  }
};

// The harness's view of a case's buffers, in plan order. A null or empty buffer has bytes == 0.
struct BufferView {
  void* data = nullptr;
  std::size_t bytes = 0;

  template <class T>
  T* as() const {
    return static_cast<T*>(data);
  }
  template <class T>
  std::span<T> span() const {
    return {static_cast<T*>(data), bytes / sizeof(T)};
  }
};
using BufferViews = std::span<const BufferView>;

// Whatever a challenge wants to compute once per input and use for several outputs (naive, par and
// the submission run on the same input). Keep it small: at most O(rows) for large cases.
class Reference {
 public:
  virtual ~Reference() = default;
};

struct Metric {
  std::string name;
  double value = 0;
};

struct CheckResult {
  bool pass = true;
  // Largest error of any output and its bound, in the units of the tolerance; absent for discrete
  // outputs. `accuracy` is the error relative to that of a plain fp32 implementation (1 = as good).
  std::optional<double> error, bound, accuracy;
  std::string detail;  // for people: the first mismatch with index, got and expected
  std::vector<Metric> metrics;
};

// The least work that any implementation of a timed case must do.
struct LeastWork {
  double bytes = 0;  // of memory traffic with cold caches: inputs read once, outputs written once
  double flops = 0;  // of matrix products only, each multiplication and each addition
  double launches = 1;  // in sequence: at least one for every call and one between callbacks
};

// Memory that a run took by the kernel's account (for a device: the device's account), beyond what
// a submission may hold outside ctx->alloc's blocks. In bytes; never more than it really took.
struct MemoryAccount {
  std::uint64_t peak = 0, last_phase_peak = 0;
};

// The harness's half of a callback challenge, the model that a submission calls. Answers requests
// that arrive during the submission's call, while the worker is stopped and its clock stands still.
// `request` is hostile bytes: parse with bounds, and check every count before a loop or an
// allocation. Returns a status for the adapter and fills `response`.
class CallbackServer {
 public:
  virtual ~CallbackServer() = default;
  virtual std::int32_t serve(std::uint32_t kind, std::span<const std::byte> request,
                             std::span<std::byte> response) = 0;
  // The first request against the rules, or nothing. It fails the case whatever the call returned:
  // a request refused with a status may make the call return just the one expected.
  std::string_view complaint() const { return complaint_; }

 protected:
  // Refuses a request. Returns the status to serve.
  std::int32_t complain(std::string_view what) {
    if (complaint_.empty()) complaint_.append("the model was called wrongly: ").append(what);
    return ASSAY_EINVAL;
  }

 private:
  std::string complaint_;
};

// The case that a draw from the spec's space stands for.
struct DrawnCase {
  nlohmann::json params;           // in the challenge's own terms
  std::int32_t expect_status = 0;  // ASSAY_*
};

// A call made by a submission's own tests, as recorded by the challenge's witness.cpp (see
// assay/witness.h). Hostile bytes: check sizes before computing anything from them.
struct RecordedCall {
  struct Array {
    std::int32_t handle = 0;
    bool null = false;
    std::span<const std::byte> bytes{};
  };
  std::int32_t entry = 0;
  std::span<const std::byte> params;  // what the adapter would be given
  // The call's inputs, by the handle of the case's buffer; a handle that occurs more than once is
  // one input in pieces. Handles that no buffer has are only for recorded().
  std::vector<Array> arrays;

  // Absent when the params do not have T's size.
  template <class T>
  std::optional<T> params_as() const {
    static_assert(std::is_trivially_copyable_v<T>);
    if (params.size() != sizeof(T)) return std::nullopt;
    T value;
    std::memcpy(&value, params.data(), sizeof value);
    return value;
  }
  // The first array with that handle; null if the call has none.
  const Array* find(std::int32_t handle) const {
    for (const Array& array : arrays) {
      if (array.handle == handle) return &array;
    }
    return nullptr;
  }
};

class Challenge {
 public:
  virtual ~Challenge() = default;

  // `draw` holds what all draws have and the value of each axis. Axes that depend on each other may
  // be adjusted here to agree. Returns nothing if they cannot; then another draw is made. Depends
  // only on the draw.
  virtual std::optional<DrawnCase> drawn(const nlohmann::json& draw) const {
    return DrawnCase{draw, 0};
  }

  virtual CasePlan plan(const CaseSpec&) const = 0;

  // Writes every input and inout buffer from the seeds alone; the harness poisons the outputs. What
  // is drawn from seeds.judging goes into inputs of a phase that never comes: reference, check and
  // callbacks find it there, and no worker ever maps it.
  virtual void fill(const CaseSpec&, const CasePlan&, const Seeds&, BufferViews) const = 0;

  // Called after fill and before the worker runs; inout buffers still have their first contents.
  virtual std::unique_ptr<Reference> reference(const CaseSpec&, const CasePlan&,
                                               BufferViews) const = 0;

  // Judges the outputs. The worker is stopped and its output memory is hostile bytes: it may hold
  // any value, so bound every index and length read from it before use. `server` is what
  // callbacks() returned for this run, or null.
  virtual CheckResult check(const CaseSpec&, const CasePlan&, const Reference&, BufferViews,
                            const CallbackServer* server) const = 0;

  // Whether the case's entry calls back into the harness.
  virtual bool has_callbacks(const CaseSpec&) const { return false; }

  // A fresh server per run of a case with callbacks, else null.
  virtual std::unique_ptr<CallbackServer> callbacks(const CaseSpec&, const CasePlan&,
                                                    BufferViews) const {
    return nullptr;
  }

  // Raises memory metrics that rest on the worker's own report, which is never trusted alone, to
  // what the account shows. Returns why the case fails by it, or "". Only called for cases that
  // measure memory.
  virtual std::string hold_to_account(const CaseSpec&, const CasePlan&, const MemoryAccount&,
                                      std::vector<Metric>&) const {
    return "";
  }

  // The params of a case that makes this call with the call's arrays as inputs; inputs that the
  // call has no array for are zero. Absent if the challenge has no such case, or if the arguments
  // are illegal or too large to be judged.
  virtual std::optional<nlohmann::json> recorded(const RecordedCall&) const { return std::nullopt; }
  // Whether inputs filled from such a call keep the task's promises. May correct values that tests
  // can only know approximately.
  virtual bool adopt(const CaseSpec&, const CasePlan&, BufferViews) const { return true; }

  // For rooflines and floors; absent if there is no simple bound.
  virtual std::optional<LeastWork> least_work(const CaseSpec&, const CasePlan&) const {
    return std::nullopt;
  }

  // One line for tables, e.g. "rows=64 D=1024 f32".
  virtual std::string shape(const CaseSpec&) const = 0;
};

}  // namespace assay

// In challenge.cpp: ASSAY_CHALLENGE(layer_norm_backward, LayerNormBackward)
#define ASSAY_CHALLENGE(name, Type)     \
  namespace assay {                     \
  const Challenge& challenge_##name() { \
    static const Type instance;         \
    return instance;                    \
  }                                     \
  }
