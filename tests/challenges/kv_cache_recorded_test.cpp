// Recorded calls as cases: the calls on a cache come back as a script.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "cases/given_inputs.h"
#include "challenges/kv_cache_case.h"

namespace assay::kv_cache {
namespace {

using nlohmann::json;

// A case's script as a witness sees it executed by a right implementation, which gives each new
// sequence the slot of its variable.
class Session {
 public:
  explicit Session(const Drawn& drawn) : drawn_(drawn), params_(drawn.plan().params) {
    call.params = params_;
    for (std::size_t i = 0; i < drawn.reference().ops.size(); ++i) {
      const Op& op = drawn.reference().ops[i];
      if (op.kind != kNothing) add(op, drawn.reference().expected[i].status == Expect::success);
    }
    for (std::size_t i = 0; i < fields_.size(); ++i)
      call.arrays.push_back({handles_[i], false, fields_[i]});
  }
  Session(const Session&) = delete;

  // Changes the operation with that number.
  template <class Change>
  void with(std::size_t number, Change change) {
    for (std::size_t i = 0; i < handles_.size(); ++i) {
      if (handles_[i] != kRecordedOp || number-- > 0) continue;
      RecordedOp op;
      std::memcpy(&op, fields_[i].data(), sizeof op);
      change(op);
      std::memcpy(fields_[i].data(), &op, sizeof op);
      return;
    }
  }
  template <class Change>
  void with_config(Change change) {
    Params params;
    std::memcpy(&params, params_.data(), sizeof params);
    change(params.config[0]);
    std::memcpy(params_.data(), &params, sizeof params);
  }
  std::optional<CaseSpec> taken() const {
    return cases::GivenInputs(*subject().challenge).take(call);
  }
  // The kinds of operations in the case that the calls become.
  std::vector<std::int64_t> kinds() const {
    std::vector<std::int64_t> found;
    if (const auto spec = taken()) {
      const Drawn drawn(*spec);
      for (const Op& op : drawn.reference().ops) found.push_back(op.kind);
    }
    return found;
  }

  RecordedCall call;

 private:
  std::int32_t slot_of(std::int64_t variable) const {
    return static_cast<std::int32_t>(variable < 0 ? -variable - 2 : variable);
  }

  template <class T>
  static void append(std::vector<std::byte>& to, const T& value) {
    const auto bytes = std::as_bytes(std::span(&value, 1));
    to.insert(to.end(), bytes.begin(), bytes.end());
  }

  void rows(Handle handle, std::int64_t at, std::int64_t elements) {
    const auto bytes = static_cast<std::size_t>(drawn_.params().element_bytes);
    if (elements == 0) return;
    const auto* data = drawn_.buffer(handle).as<std::byte>() + static_cast<std::size_t>(at) * bytes;
    handles_.push_back(handle);
    fields_.emplace_back(data, data + static_cast<std::size_t>(elements) * bytes);
  }

  void add(const Op& op, bool succeeds) {
    const kvc_config& c = drawn_.params().config[0];
    RecordedOp recorded;
    recorded.kind = op.kind;
    recorded.layer = op.layer;
    recorded.n = op.n;
    recorded.length = op.length;
    recorded.from = op.from;
    recorded.until = op.until;
    recorded.shared = op.shared;
    recorded.slot = slot_of(op.sequence);
    recorded.scale = drawn_.params().scale;
    std::vector<std::byte> packet;
    const std::int64_t* pool = drawn_.reference().pool.data() + op.pool;
    if (is_attention(op.kind) && op.lse_at < 0) recorded.flags = kNullLse;
    append(packet, recorded);
    const bool batch = is_attention(op.kind) || op.kind == kAppend;
    const std::int64_t count = batch ? pool[2 * op.n] : 0;
    if (batch) {
      for (std::int64_t b = 0; b < op.n; ++b) append(packet, slot_of(pool[b]));
      for (std::int64_t b = 0; b <= op.n; ++b) append(packet, pool[op.n + b]);
      for (std::int64_t i = 0; op.kind == kAttendTree && i < count; ++i)
        append(packet, static_cast<std::int32_t>(pool[2 * op.n + 1 + i]));
    }
    handles_.push_back(kRecordedOp);
    fields_.push_back(std::move(packet));
    if (op.kind == kAppend) {
      rows(kK, op.k_at, count * c.n_kv * c.D);
      rows(kV, op.v_at, count * c.n_kv * c.Dv);
    } else if (batch) {
      rows(kQ, op.q_at, count * c.n_q * c.D);
    }
    std::vector<std::byte> result;
    append(result, RecordedResult{succeeds ? ASSAY_OK : ASSAY_EINVAL,
                                  slot_of(op.kind == kFork ? op.forked : op.sequence)});
    handles_.push_back(kRecordedResult);
    fields_.push_back(std::move(result));
  }

  const Drawn& drawn_;
  std::vector<std::byte> params_;
  std::vector<int> handles_;
  std::vector<std::vector<std::byte>> fields_;
};

// Whether a witness can see everything: one cache that is not bent, quantised or short of memory.
bool is_recordable(const Drawn& drawn) {
  constexpr std::int64_t kBent =
      kNullK | kNullV | kNullSlots | kNullCu | kNegativeBatch | kNullParent | kNullCache;
  const kvc_config& c = drawn.params().config[0];
  if (drawn.params().phases > 1 || c.window > 0 || c.quant != 0) return false;
  if (std::ranges::count(drawn.reference().ops, kCreate, &Op::kind) > 1) return false;
  return std::ranges::all_of(drawn.reference().ops, [](const Op& op) {
    return op.cache == 0 && op.layer >= 0 && op.kind != kAllow && (op.flags & kBent) == 0 &&
           (op.kind != kCreate || op.field == kFieldNone);
  });
}

// Whether the script asks for slots by number, which some implementations may have given out.
bool names_slots(const Drawn& drawn) {
  const std::vector<std::int64_t>& pool = drawn.reference().pool;
  return std::ranges::any_of(drawn.reference().ops, [&](const Op& op) {
    const bool batch = is_attention(op.kind) || op.kind == kAppend;
    for (std::int64_t b = 0; batch && b < op.n; ++b) {
      if (pool[static_cast<std::size_t>(op.pool + b)] < 0) return true;
    }
    return op.kind != kCreate && op.sequence < 0;
  });
}

TEST(KvRecorded, WhatCasesDoComesBack) {
  int seen = 0;
  std::set<std::string> others;
  for (const CaseSpec& c : subject().spec.cases) {
    if (c.group == CaseGroup::timed || c.group == CaseGroup::resource) continue;
    const Drawn drawn(c, 3);
    if (names_slots(drawn) || !is_recordable(drawn)) continue;
    const Session session(drawn);
    cases::GivenInputs given(*subject().challenge);
    const auto spec = given.take(session.call);
    if (!spec) {
      others.insert(c.name);
      continue;
    }
    const Drawn back(*spec);
    std::vector<Op> before = drawn.reference().ops;
    std::erase_if(before, [](const Op& op) { return op.kind == kNothing; });
    EXPECT_EQ(back.reference().ops.size(), before.size()) << c.name;
    if (back.reference().ops.size() != before.size()) continue;
    for (std::size_t i = 0; i < before.size(); ++i) {
      const Op &is = back.reference().ops[i], &was = before[i];
      EXPECT_EQ(is.kind, was.kind) << c.name << " " << i;
      EXPECT_EQ(is.flags & kMayFail, was.flags & kMayFail) << c.name << " " << i;
      EXPECT_EQ(is.k_at, was.k_at) << c.name << " " << i;
      EXPECT_EQ(is.q_at, was.q_at) << c.name << " " << i;
      EXPECT_EQ(is.length, was.length) << c.name << " " << i;
      EXPECT_EQ(is.from, was.from) << c.name << " " << i;
      EXPECT_EQ(is.until, was.until) << c.name << " " << i;
      EXPECT_EQ(is.shared, was.shared) << c.name << " " << i;
    }
    const CasePlan plan = given.plan(*spec);
    std::vector<std::vector<std::byte>> memory;
    std::vector<BufferView> views;
    for (const BufferPlan& buffer : plan.buffers) {
      memory.emplace_back(buffer.bytes());
      views.push_back({memory.back().data(), memory.back().size()});
    }
    given.fill(*spec, plan, Seeds(1), views);
    for (const int handle : {kK, kV, kQ}) {
      const auto& of = memory[static_cast<std::size_t>(handle)];
      // A drawn script leaves room after its rows.
      EXPECT_TRUE(drawn.bytes(handle).starts_with(
          std::string(reinterpret_cast<const char*>(of.data()), of.size())))
          << c.name << " " << handle;
    }
    ++seen;
  }
  EXPECT_GE(seen, 20);
  // The refused call of the first has two possible reasons; the second is too long.
  EXPECT_THAT(others, ::testing::ElementsAre("capacity", "long_split"));
}

const json kSmall{{"n_q", 2}, {"n_kv", 1}, {"D", 4}, {"max_seqs", 8}};
const char* const kScript = "create; new a b; append a:3 b:1; attend a:1 b:1; read a 0 2; destroy";

// Slots given out by the accused belong to its own run; another run has different ones.
TEST(KvRecorded, ASlotThatNobodyGaveEndsTheScript) {
  const Drawn drawn(scripted(kSmall, "create; new a; append a:3; free a; new b; append b:2"));
  const std::vector<std::int64_t> all{kCreate, kNew, kAppend, kFree, kNew, kAppend, kDestroy};
  EXPECT_EQ(Session(drawn).kinds(), all);
  for (const std::int32_t slot : {5, -2, -100}) {
    Session session(drawn);
    session.with(3, [&](RecordedOp& op) { op.slot = slot; });
    EXPECT_EQ(session.kinds(), (std::vector<std::int64_t>{kCreate, kNew, kAppend, kDestroy}))
        << slot;
  }
  for (const std::int32_t slot : {-1, 8, 1000}) {  // slots that no cache has
    Session session(drawn);
    session.with(3, [&](RecordedOp& op) { op.slot = slot; });
    EXPECT_EQ(session.kinds(), all) << slot;
  }
}

TEST(KvRecorded, AnotherScaleEndsTheScript) {
  const Drawn drawn(scripted(kSmall, "create; new a; append a:3; attend a:1; attend a:1; bytes"));
  Session session(drawn);
  session.with(4, [](RecordedOp& op) { op.scale *= 2; });
  EXPECT_EQ(session.kinds(),
            (std::vector<std::int64_t>{kCreate, kNew, kAppend, kAttend, kDestroy}));
}

TEST(KvRecorded, WhatBreaksOffIsJudgedSoFar) {
  const Drawn drawn(scripted(kSmall, kScript));
  Session session(drawn);
  const std::size_t all = session.call.arrays.size();
  std::size_t last = 0;
  for (std::size_t kept = 1; kept <= all; ++kept) {
    Session part(drawn);
    part.call.arrays.resize(kept);
    const std::size_t n = part.kinds().size();
    EXPECT_GE(n, std::max<std::size_t>(last, 2)) << kept;
    last = n;
  }
  EXPECT_EQ(last, drawn.reference().ops.size());
}

// Forged numbers: none makes the harness compute or read without bounds, and none makes a caller of
// the case break a promise.
TEST(KvRecorded, WhatIsForgedIsNoCase) {
  const Drawn drawn(scripted(kSmall, kScript));
  constexpr std::int64_t kHuge = std::int64_t{1} << 62;
  const auto config = [&](auto change) {
    Session session(drawn);
    EXPECT_TRUE(session.taken());
    session.with_config(change);
    return session.taken().has_value();
  };
  EXPECT_FALSE(config([](kvc_config& c) { c.window = 8; }));
  EXPECT_FALSE(config([](kvc_config& c) { c.quant = 8; }));
  EXPECT_FALSE(config([](kvc_config& c) { c.n_layers = 1 << 30; }));
  EXPECT_FALSE(config([](kvc_config& c) { c.n_q = 3, c.n_kv = 2; }));
  EXPECT_FALSE(config([](kvc_config& c) { c.D = 0; }));
  EXPECT_FALSE(config([](kvc_config& c) { c.dtype = 9; }));
  EXPECT_FALSE(config([](kvc_config& c) { c.max_len = -1; }));
  EXPECT_FALSE(config([](kvc_config& c) { c.size = 1; }));
  const auto op = [&](std::size_t number, auto change) {
    Session session(drawn);
    session.with(number, change);
    return session.kinds().size();
  };
  constexpr std::size_t kAppended = 3, kRead = 5;
  const std::size_t all = drawn.reference().ops.size();
  EXPECT_EQ(op(kAppended, [](RecordedOp& o) { o.n = kHuge; }), 0u);
  EXPECT_EQ(op(kAppended, [](RecordedOp& o) { o.n = -1; }), 0u);
  EXPECT_EQ(op(kAppended, [](RecordedOp& o) { o.kind = kHuge; }), 0u);
  EXPECT_EQ(op(kAppended, [](RecordedOp& o) { o.flags = kNullK; }), 0u);
  EXPECT_LT(op(kAppended, [](RecordedOp& o) { o.layer = -1; }), all);
  EXPECT_LT(op(kAppended, [](RecordedOp& o) { o.layer = kHuge; }), all) << "no number of the ABI";
  EXPECT_EQ(op(kAppended, [](RecordedOp& o) { o.layer = 7; }), all) << "which must be refused";
  EXPECT_LT(op(kRead, [](RecordedOp& o) { o.until = kHuge; }), all);
  EXPECT_LT(op(kRead, [](RecordedOp& o) { o.from = std::numeric_limits<std::int64_t>::min(); }),
            all);
  EXPECT_LT(op(kRead, [](RecordedOp& o) { o.until = 1 << 20; }), all) << "more than is kept";
}

// A slot that does not exist and more tokens than there is room for: either status is right.
TEST(KvRecorded, CallsThatAreWrongInTwoWaysAreNoCase) {
  json config = kSmall;
  config.update(json{{"max_seqs", 1}, {"max_len", 4}});
  const auto taken = [&](const std::string& script) {
    return Session(Drawn(scripted(config, script))).taken().has_value();
  };
  EXPECT_TRUE(taken("create; new a; append a:5"));
  EXPECT_TRUE(taken("create; new a; append #1:1"));
  EXPECT_FALSE(taken("create; new a; append #1:5"));
  EXPECT_TRUE(taken("create; new a; fork a b"));
  EXPECT_FALSE(taken("create; new a; fork #1 b"));
}

TEST(KvRecorded, RowsThatAreNotFiniteAreNoCase) {
  const Drawn drawn(scripted(kSmall, kScript));
  for (const int handle : {kK, kV, kQ}) {
    for (const float value : {NAN, INFINITY, 3e38f, 1.0f}) {
      Session session(drawn);
      std::vector<std::byte> rows;
      for (RecordedCall::Array& array : session.call.arrays) {
        if (array.handle != handle) continue;
        rows.assign(array.bytes.begin(), array.bytes.end());
        std::memcpy(rows.data() + 4, &value, 4);
        array.bytes = rows;
      }
      EXPECT_EQ(session.taken().has_value(), value == 1) << handle << " " << value;
    }
  }
}

// Whether forks share tokens depends on where these were appended. Two sequences with equal
// contents by chance do not share.
TEST(KvRecorded, OnlyForksShare) {
  const Drawn forks(scripted(kSmall, "create; new a; append a:3; fork a b; shared 2 a:1 b:1"));
  EXPECT_TRUE(Session(forks).taken());
  Session session(forks);
  session.with(4, [](RecordedOp& op) { op.shared = 1; });
  EXPECT_TRUE(session.taken());
  const Drawn apart(
      scripted(kSmall, "create; new a; append a:3; new b; append b:3; shared 0 a:1 b:1"));
  Session promised(apart);
  promised.with(5, [](RecordedOp& op) { op.shared = 2; });
  bool taken = true;
  try {
    taken = promised.taken().has_value();
  } catch (const std::exception&) {
    taken = false;
  }
  EXPECT_FALSE(taken);
}

}  // namespace
}  // namespace assay::kv_cache
