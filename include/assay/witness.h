// What a challenge author implements to settle disputes: witness.cpp. It sits between a
// submission's tests and an implementation that they rejected, and records what they pass to it. It
// runs in the sandboxed worker beside these tests, so what it writes is hostile bytes: inputs to
// try, never evidence. Only inputs are kept; outputs are computed again elsewhere.
//
// Layout of the harness's memory that the worker can reach: an Account, then the calls in sequence.
// A call is a CallHead, then for each field a FieldHead and its bytes, padded to a multiple of 8.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <vector>

namespace assay::witness {

struct Account {
  std::uint64_t used = 0;     // bytes of calls after this header
  std::uint64_t dropped = 0;  // calls that did not fit
  std::uint64_t strange = 0;  // calls whose arguments do not allow an array to be read
};
struct CallHead {
  std::uint64_t bytes = 0;  // including this head and all fields
  std::int32_t entry = 0;   // the adapter's routine
  std::uint32_t fields = 0;
};
struct FieldHead {
  std::int32_t handle = 0;  // of a buffer of the case, or kParams
  std::uint32_t null = 0;   // the pointer was NULL
  std::uint64_t bytes = 0;
};
inline constexpr std::int32_t kParams = -1;  // the field with the adapter's params
constexpr std::uint64_t padded(std::uint64_t bytes) { return (bytes + 7) / 8 * 8; }

class Journal;

// Where this process writes its calls.
struct Page {
  std::mutex mutex;
  unsigned char* data = nullptr;
  std::uint64_t room = 0;          // bytes after the account
  std::vector<Journal*> journals;  // begun, and may continue

  Account& account() const { return *reinterpret_cast<Account*>(data); }
  unsigned char* place(std::uint64_t at) const { return data + sizeof(Account) + at; }
  static Page& of_process() {
    static Page page;
    return page;
  }
};

// Array sizes in bytes, or kNone if a number is negative or the size exceeds any record.
inline constexpr std::int64_t kNone = -1;
inline constexpr std::int64_t kMost = std::int64_t{1} << 40;
constexpr std::int64_t product(std::int64_t a, std::int64_t b) {
  if (a < 0 || b < 0) return kNone;
  return a != 0 && b > kMost / a ? kNone : a * b;
}
constexpr std::int64_t sum(std::int64_t a, std::int64_t b) {
  if (a < 0 || b < 0 || a > kMost || b > kMost) return kNone;
  return a + b;
}

// One call, stored whole on destruction or not at all.
class Record {
 public:
  explicit Record(std::int32_t entry) : page_(Page::of_process()), lock_(page_.mutex) {
    head_.entry = entry;
    if (page_.data == nullptr) return;
    at_ = page_.account().used;
    fits_ = true;
    take(sizeof head_);
  }
  ~Record() {
    if (page_.data == nullptr) return;
    Account& account = page_.account();
    if (strange_) {
      ++account.strange;
    } else if (!fits_) {
      ++account.dropped;
    } else {
      head_.bytes = at_ - account.used;
      std::memcpy(page_.place(account.used), &head_, sizeof head_);
      account.used = at_;
    }
  }
  Record(const Record&) = delete;
  Record& operator=(const Record&) = delete;

  // Marks a call whose arrays cannot be read, for example because sizes are negative.
  void strange() { strange_ = true; }

  template <class T>
  void params(const T& value) {
    array(kParams, &value, sizeof value);
  }
  void array(std::int32_t handle, const void* data, std::int64_t bytes) {
    unsigned char* const to = field(handle, data, bytes);
    if (to != nullptr && bytes > 0) std::memcpy(to, data, static_cast<std::size_t>(bytes));
  }
  // `rows` rows of `bytes` bytes, each `stride` bytes after the one before, with NaN between them.
  void rows(std::int32_t handle, const void* data, std::int64_t rows, std::int64_t bytes,
            std::int64_t stride) {
    blocks(handle, data, bytes, {rows, stride}, {1, 0}, {1, 0});
  }

  struct Axis {
    std::int64_t count = 0, stride = 0;  // in bytes
  };
  // Pieces of `bytes` bytes on three axes, with NaN between them.
  void blocks(std::int32_t handle, const void* data, std::int64_t bytes, Axis a, Axis b, Axis c) {
    const bool empty = a.count == 0 || b.count == 0 || c.count == 0 || bytes == 0;
    const std::int64_t span = empty ? 0 : sum(sum(last(a), last(b)), sum(last(c), bytes));
    unsigned char* const to = field(handle, data, span);
    if (to == nullptr || empty) return;
    std::memset(to, 0xff, static_cast<std::size_t>(span));
    for (std::int64_t i = 0; i < a.count; ++i) {
      for (std::int64_t j = 0; j < b.count; ++j) {
        for (std::int64_t k = 0; k < c.count; ++k) {
          const std::int64_t at = i * a.stride + j * b.stride + k * c.stride;
          std::memcpy(to + at, static_cast<const unsigned char*>(data) + at,
                      static_cast<std::size_t>(bytes));
        }
      }
    }
  }

 private:
  static std::int64_t last(Axis axis) {
    return axis.count < 0 ? kNone : product(axis.count - 1, axis.stride);
  }
  bool take(std::uint64_t bytes) {
    fits_ = fits_ && page_.room >= at_ && page_.room - at_ >= bytes;
    if (fits_) at_ += bytes;
    return fits_;
  }
  // Room for a field, or null if there is none or nothing can be read.
  unsigned char* field(std::int32_t handle, const void* data, std::int64_t bytes) {
    if (bytes < 0) strange_ = true;
    if (strange_ || page_.data == nullptr) return nullptr;
    FieldHead head;
    head.handle = handle;
    head.null = data == nullptr ? 1 : 0;
    head.bytes = data == nullptr ? 0 : static_cast<std::uint64_t>(bytes);
    const std::uint64_t at = at_;
    if (!take(sizeof head + padded(head.bytes))) return nullptr;
    std::memcpy(page_.place(at), &head, sizeof head);
    ++head_.fields;
    return data == nullptr ? nullptr : page_.place(at) + sizeof head;
  }

  Page& page_;
  std::lock_guard<std::mutex> lock_;
  CallHead head_;
  std::uint64_t at_ = 0;
  bool fits_ = false, strange_ = false;
};

// A call that continues with every answer of a callback or every use of a handle. Each field is
// stored when it is added, so a crash does not lose earlier ones. The first field that does not fit
// ends the journal, because later ones would mean something else without it.
class Journal {
 public:
  explicit Journal(std::int32_t entry) { head_.entry = entry; }
  ~Journal() {
    Page& page = Page::of_process();
    const std::lock_guard<std::mutex> lock(page.mutex);
    std::erase(page.journals, this);
  }
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  template <class T>
  void params(const T& value) {
    add(kParams, &value, sizeof value);
  }
  void add(std::int32_t handle, const void* data, std::int64_t bytes) {
    Page& page = Page::of_process();
    const std::lock_guard<std::mutex> lock(page.mutex);
    if (page.data == nullptr || ended_) return;
    FieldHead field;
    field.handle = handle;
    field.null = data == nullptr ? 1 : 0;
    field.bytes = data == nullptr ? 0 : static_cast<std::uint64_t>(bytes);
    Account& account = page.account();
    const std::uint64_t begun = head_.bytes == 0 ? sizeof head_ : 0,
                        size = sizeof field + padded(field.bytes);
    ended_ = bytes < 0 || bytes > kMost || account.used > page.room ||
             page.room - account.used < begun + size;
    if (ended_) {
      ++account.dropped;
      return;
    }
    if (begun > 0) {
      begin_ = account.used;
      head_.bytes = begun;
      page.journals.push_back(this);
    } else {
      move_behind_all(page);
    }
    unsigned char* const to = page.place(begin_ + head_.bytes);
    std::memcpy(to, &field, sizeof field);
    if (field.bytes > 0)
      std::memcpy(to + sizeof field, data, static_cast<std::size_t>(field.bytes));
    head_.bytes += size;
    ++head_.fields;
    std::memcpy(page.place(begin_), &head_, sizeof head_);
    account.used = begin_ + head_.bytes;
  }

 private:
  // If other calls were written since, moves them up so that this one can continue after them.
  void move_behind_all(Page& page) {
    const std::uint64_t end = begin_ + head_.bytes, used = page.account().used;
    if (end >= used) return;
    std::rotate(page.place(begin_), page.place(end), page.place(used));
    for (Journal* other : page.journals) {
      if (other->begin_ > begin_) other->begin_ -= head_.bytes;
    }
    begin_ = used - head_.bytes;
  }

  CallHead head_;  // bytes == 0: not begun
  std::uint64_t begin_ = 0;
  bool ended_ = false;
};

}  // namespace assay::witness

// Use once in witness.cpp: the worker calls it to say where to write.
#define ASSAY_WITNESS()                                            \
  extern "C" void assay_witness(void* memory, std::size_t bytes) { \
    auto& page = assay::witness::Page::of_process();               \
    if (bytes < sizeof(assay::witness::Account)) return;           \
    page.room = bytes - sizeof(assay::witness::Account);           \
    page.data = static_cast<unsigned char*>(memory);               \
    page.account() = {};                                           \
  }
