// The table of PTX instructions in docs/simulator.md, made by asking the decoder about each.
//
// ASSAY_WRITE_TABLE=1 writes it anew; without, the test fails if the document says something else.
#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>

#include "sim/device/device_fixture.h"
#include "support/paths.h"

namespace assay::sim {
namespace {

// Of the PTX ISA 9.0, section by section. A form that is refused must say why.
struct Form {
  const char* section;
  const char* name;  // as the ISA has it
  const char* text;  // one instruction, or a few that belong together
  const char* why = "";
};

constexpr const char* kCluster = "clusters of blocks";
constexpr const char* kTma = "TMA: asynchronous copies by the block";
constexpr const char* kTexture = "textures and surfaces";
constexpr const char* kVideo = "emulated since sm_50; no compiler emits them";
constexpr const char* kBlackwell = "needs sm_100";
constexpr const char* kNoSync = "does not exist from sm_70 on";

constexpr const char* kInteger = "integer arithmetic";
constexpr const char* kExtended = "extended precision";
constexpr const char* kFloat = "f32 and f64";
constexpr const char* kHalf = "f16 and bf16";
constexpr const char* kMixed = "mixed precision";
constexpr const char* kCompare = "comparison, selection";
constexpr const char* kLogic = "logic, shifts";
constexpr const char* kMove = "data movement";
constexpr const char* kConvert = "conversion";
constexpr const char* kAsync = "asynchronous copies";
constexpr const char* kControl = "control flow";
constexpr const char* kSync = "synchronisation";
constexpr const char* kMatrix = "matrices";
constexpr const char* kWarpgroup = "warpgroups, tcgen05";
constexpr const char* kOther = "other";

constexpr Form kForms[] = {
    {kInteger, "add",
     "add.s32 %r1, %r2, %r3; add.u64 %rd1, %rd2, %rd3; add.sat.s32 %r1, %r2, %r3;"},
    {kInteger, "add.u16x2", "add.u16x2 %r1, %r2, %r3;"},
    {kInteger, "sub", "sub.s16 %h1, %h2, %h3; sub.sat.s32 %r1, %r2, %r3;"},
    {kInteger, "mul",
     "mul.lo.s32 %r1, %r2, %r3; mul.hi.u64 %rd1, %rd2, %rd3; mul.wide.s32 %rd1, %r1, %r2;"},
    {kInteger, "mad",
     "mad.lo.s32 %r1, %r2, %r3, %r4; mad.hi.sat.s32 %r1, %r2, %r3, %r4; mad.wide.u16 %r1, %h1, "
     "%h2, %r2;"},
    {kInteger, "mul24", "mul24.lo.s32 %r1, %r2, %r3; mul24.hi.u32 %r1, %r2, %r3;"},
    {kInteger, "mad24", "mad24.lo.s32 %r1, %r2, %r3, %r4; mad24.hi.sat.s32 %r1, %r2, %r3, %r4;"},
    {kInteger, "sad", "sad.u32 %r1, %r2, %r3, %r4;"},
    {kInteger, "div", "div.s32 %r1, %r2, %r3; div.u64 %rd1, %rd2, %rd3;"},
    {kInteger, "rem", "rem.s32 %r1, %r2, %r3;"},
    {kInteger, "abs", "abs.s32 %r1, %r2;"},
    {kInteger, "neg", "neg.s64 %rd1, %rd2;"},
    {kInteger, "min",
     "min.s32 %r1, %r2, %r3; min.u16x2 %r1, %r2, %r3; min.relu.s32 %r1, %r2, %r3;"},
    {kInteger, "max", "max.u64 %rd1, %rd2, %rd3; max.relu.s16x2 %r1, %r2, %r3;"},
    {kInteger, "popc", "popc.b64 %r1, %rd1;"},
    {kInteger, "clz", "clz.b32 %r1, %r2;"},
    {kInteger, "bfind", "bfind.s32 %r1, %r2; bfind.shiftamt.u64 %r1, %rd1;"},
    {kInteger, "fns", "fns.b32 %r1, %r2, %r3, %r4;"},
    {kInteger, "brev", "brev.b32 %r1, %r2;"},
    {kInteger, "bfe", "bfe.s32 %r1, %r2, %r3, %r4; bfe.u64 %rd1, %rd2, %r1, %r2;"},
    {kInteger, "bfi", "bfi.b64 %rd1, %rd2, %rd3, %r1, %r2;"},
    {kInteger, "szext", "szext.wrap.s32 %r1, %r2, %r3; szext.clamp.u32 %r1, %r2, %r3;"},
    {kInteger, "bmsk", "bmsk.clamp.b32 %r1, %r2, %r3;"},
    {kInteger, "dp4a", "dp4a.s32.u32 %r1, %r2, %r3, %r4;"},
    {kInteger, "dp2a", "dp2a.lo.s32.u32 %r1, %r2, %r3, %r4;"},
    {kInteger, "clmad", "clmad.lo.u64 %rd1, %rd2, %rd3, %rd4;", kBlackwell},

    {kExtended, "add.cc, addc",
     "add.cc.u32 %r1, %r2, %r3; addc.cc.u64 %rd1, %rd2, %rd3; addc.s32 %r1, %r2, %r3;"},
    {kExtended, "sub.cc, subc", "sub.cc.u32 %r1, %r2, %r3; subc.cc.u32 %r1, %r2, %r3;"},
    {kExtended, "mad.cc, madc",
     "mad.lo.cc.u32 %r1, %r2, %r3, %r4; madc.hi.cc.u32 %r1, %r2, %r3, %r4; madc.lo.u64 %rd1, %rd2, "
     "%rd3, %rd4;"},

    {kFloat, "testp", "testp.finite.f32 %p1, %f1; testp.subnormal.f64 %p1, %fd1;"},
    {kFloat, "copysign", "copysign.f32 %f1, %f2, %f3;"},
    {kFloat, "add, sub, mul",
     "add.rz.ftz.sat.f32 %f1, %f2, %f3; sub.rm.f64 %fd1, %fd2, %fd3; mul.rp.f32 %f1, %f2, %f3;"},
    {kFloat, "fma, mad",
     "fma.rn.ftz.sat.f32 %f1, %f2, %f3, %f4; mad.rz.f64 %fd1, %fd2, %fd3, %fd4;"},
    {kFloat, "div",
     "div.approx.f32 %f1, %f2, %f3; div.full.f32 %f1, %f2, %f3; div.rn.f64 %fd1, %fd2, %fd3;"},
    {kFloat, "abs, neg", "abs.ftz.f32 %f1, %f2; neg.f64 %fd1, %fd2;"},
    {kFloat, "min, max",
     "min.NaN.f32 %f1, %f2, %f3; max.NaN.xorsign.abs.f32 %f1, %f2, %f3; max.f64 %fd1, %fd2, %fd3;"},
    {kFloat, "min, max of three", "max.f32 %f1, %f2, %f3, %f4;", kBlackwell},
    {kFloat, "rcp",
     "rcp.approx.f32 %f1, %f2; rcp.rn.f64 %fd1, %fd2; rcp.approx.ftz.f64 %fd1, %fd2;"},
    {kFloat, "sqrt", "sqrt.approx.f32 %f1, %f2; sqrt.rn.f64 %fd1, %fd2;"},
    {kFloat, "rsqrt",
     "rsqrt.approx.f32 %f1, %f2; rsqrt.approx.f64 %fd1, %fd2; rsqrt.approx.ftz.f64 %fd1, %fd2;"},
    {kFloat, "sin, cos", "sin.approx.f32 %f1, %f2; cos.approx.ftz.f32 %f1, %f2;"},
    {kFloat, "lg2, ex2", "lg2.approx.f32 %f1, %f2; ex2.approx.ftz.f32 %f1, %f2;"},
    {kFloat, "tanh", "tanh.approx.f32 %f1, %f2;"},
    {kFloat, "add.f32x2 and the like", "add.f32x2 %rd1, %rd2, %rd3;", kBlackwell},

    {kHalf, "add, sub, mul",
     "add.f16 %h1, %h2, %h3; sub.ftz.sat.f16x2 %r1, %r2, %r3; mul.rn.bf16x2 %r1, %r2, %r3; "
     "add.bf16 %h1, %h2, %h3;"},
    {kHalf, "fma", "fma.rn.relu.f16x2 %r1, %r2, %r3, %r4; fma.rn.bf16 %h1, %h2, %h3, %h4;"},
    {kHalf, "fma.oob", "fma.rn.oob.f16x2 %r1, %r2, %r3, %r4;", "for tiles that TMA filled"},
    {kHalf, "neg, abs", "neg.f16 %h1, %h2; abs.bf16x2 %r1, %r2;"},
    {kHalf, "min, max", "min.f16x2 %r1, %r2, %r3; max.NaN.xorsign.abs.bf16 %h1, %h2, %h3;"},
    {kHalf, "tanh, ex2",
     "tanh.approx.bf16x2 %r1, %r2; ex2.approx.f16 %h1, %h2; ex2.approx.ftz.bf16x2 %r1, %r2;"},

    {kMixed, "add, sub, fma", "add.rn.f32.f16 %f1, %h1, %f2;", kBlackwell},

    {kCompare, "set, setp",
     "setp.lt.and.s32 %p1|%p2, %r1, %r2, %p3; setp.equ.f32 %p1, %f1, %f2; set.gt.u32.f32 %r1, %f1, "
     "%f2; setp.ne.f16x2 %p1|%p2, %r1, %r2; set.le.f16x2.f16x2 %r1, %r2, %r3;"},
    {kCompare, "selp, slct", "selp.b64 %rd1, %rd2, %rd3, %p1; slct.f32.s32 %f1, %f2, %f3, %r1;"},

    {kLogic, "and, or, xor, not, cnot",
     "and.b32 %r1, %r2, %r3; or.pred %p1, %p2, %p3; xor.b64 %rd1, %rd2, %rd3; not.b16 %h1, %h2; "
     "cnot.b32 %r1, %r2;"},
    {kLogic, "lop3",
     "lop3.b32 %r1, %r2, %r3, %r4, 0x3f; lop3.or.b32 %r1|%p1, %r2, %r3, %r4, 0x3f, %p2;"},
    {kLogic, "shf, shl, shr",
     "shf.l.wrap.b32 %r1, %r2, %r3, %r4; shl.b64 %rd1, %rd2, %r1; shr.s32 %r1, %r2, %r3;"},

    {kMove, "mov",
     "mov.b64 %rd1, {%r1, %r2}; mov.b32 {%h1, %h2}, %r1; mov.b128 %q1, {%rd1, %rd2};"},
    {kMove, "shfl.sync", "shfl.sync.bfly.b32 %r1|%p1, %r2, 1, 31, -1;"},
    {kMove, "shfl", "shfl.bfly.b32 %r1, %r2, 1, 31;", kNoSync},
    {kMove, "prmt", "prmt.b32.f4e %r1, %r2, %r3, %r4;"},
    {kMove, "ld",
     "ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1]; ld.acquire.gpu.u32 %r1, [%rd1]; "
     "ld.volatile.shared.b8 %h1, [%r1]; ld.global.b128 %q1, [%rd1];"},
    {kMove, "ld.global.nc, ldu",
     "ld.global.nc.L1::no_allocate.v2.u64 {%rd1, %rd2}, [%rd3]; ldu.global.u32 %r1, [%rd1];"},
    {kMove, "st", "st.release.gpu.global.u32 [%rd1], %r1; st.local.v2.b64 [%rd1], {%rd2, %rd3};"},
    {kMove, "st.async, red.async",
     "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r1], %r2, [%r3];", kCluster},
    {kMove, "st.bulk", "st.bulk.shared::cta [%rd1], %rd2, 0;", kBlackwell},
    {kMove, "multimem", "multimem.red.global.add.u32 [%rd1], %r1;", "several GPUs"},
    {kMove, "prefetch, prefetchu", "prefetch.global.L2 [%rd1]; prefetchu.L1 [%rd1];"},
    {kMove, "applypriority, discard",
     "applypriority.global.L2::evict_normal [%rd1], 128; discard.global.L2 [%rd1], 128;"},
    {kMove, "createpolicy", "createpolicy.fractional.L2::evict_last.b64 %rd1, 0f3F800000;"},
    {kMove, "isspacep", "isspacep.shared %p1, %rd1;"},
    {kMove, "isspacep.const", "isspacep.const %p1, %rd1;",
     "constants lie among the global addresses"},
    {kMove, "cvta", "cvta.to.global.u64 %rd1, %rd2; cvta.shared.u64 %rd1, %rd2;"},
    {kMove, "mapa", "mapa.shared::cluster.u32 %r1, %r2, 0;", kCluster},
    {kMove, "getctarank", "getctarank.shared::cluster.u32 %r1, %r2;", kCluster},

    {kConvert, "cvt",
     "cvt.rni.s32.f32 %r1, %f1; cvt.rn.f16.s64 %h1, %rd1; cvt.sat.u8.s32 %r1, %r2; "
     "cvt.rn.relu.bf16x2.f32 %r1, %f1, %f2; cvt.rna.tf32.f32 %r1, %f1; cvt.rn.satfinite.f16.f32 "
     "%h1, %f1;"},
    {kConvert, "cvt of e4m3, e5m2",
     "cvt.rn.satfinite.e4m3x2.f32 %h1, %f1, %f2; cvt.rn.satfinite.relu.e5m2x2.f16x2 %h1, %r1; "
     "cvt.rn.f16x2.e4m3x2 %r1, %h1;"},
    {kConvert, "cvt of e2m1, e2m3, e3m2, ue8m0", "cvt.rn.satfinite.e2m3x2.f32 %h1, %f1, %f2;",
     kBlackwell},
    {kConvert, "cvt.rs", "cvt.rs.f16x2.f32 %r1, %f1, %f2, %r2;", kBlackwell},
    {kConvert, "cvt.pack", "cvt.pack.sat.u8.s32.b32 %r1, %r2, %r3, %r4;"},

    {kAsync, "cp.async",
     "cp.async.ca.shared.global [%r1], [%rd1], 4; cp.async.cg.shared.global.L2::128B [%r1], "
     "[%rd1], 16, %r2;"},
    {kAsync, "cp.async groups", "cp.async.commit_group; cp.async.wait_group 1; cp.async.wait_all;"},
    {kAsync, "cp.async.bulk", "cp.async.bulk.commit_group;", kTma},
    {kAsync, "cp.reduce.async.bulk",
     "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd1], [%r1], 16;", kTma},
    {kAsync, "cp.async.bulk.tensor",
     "cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%rd1, {%r1}], [%r2];", kTma},
    {kAsync, "tensormap.replace", "tensormap.replace.tile.rank.shared::cta.b1024.b32 [%rd1], 1;",
     kTma},

    {kControl, "bra, brx.idx", "bra next; next:"},
    {kControl, "call, ret, exit", "exit;"},

    {kSync, "bar, barrier",
     "bar.sync 0; barrier.red.popc.u32 %r1, 0, %p1; barrier.arrive 1, 64; bar.warp.sync -1;"},
    {kSync, "barrier.cluster", "barrier.cluster.arrive;", kCluster},
    {kSync, "membar, fence",
     "membar.gl; fence.acq_rel.gpu; fence.proxy.tensormap::generic.release.gpu; fence.proxy.async; "
     "fence.mbarrier_init.release.cluster;"},
    {kSync, "atom, red",
     "atom.global.add.f32 %f1, [%rd1], %f2; atom.shared.cas.b16 %h1, [%r1], %h2, %h3; "
     "red.global.add.noftz.bf16x2 [%rd1], %r1; atom.exch.b128 %q1, [%rd1], %q2;"},
    {kSync, "atom, red of vectors",
     "red.global.v4.f32.add [%rd1], {%f1, %f2, %f3, %f4}; atom.global.v2.f16x2.max.noftz {%r1, "
     "%r2}, [%rd1], {%r3, %r4};"},
    {kSync, "vote.sync", "vote.sync.ballot.b32 %r1, %p1, -1; vote.sync.uni.pred %p1, %p2, -1;"},
    {kSync, "vote", "vote.all.pred %p1, %p2;", kNoSync},
    {kSync, "match.sync", "match.any.sync.b32 %r1, %r2, -1; match.all.sync.b64 %r1|%p1, %rd1, -1;"},
    {kSync, "activemask", "activemask.b32 %r1;"},
    {kSync, "redux.sync", "redux.sync.min.s32 %r1, %r2, -1;"},
    {kSync, "redux.sync.f32", "redux.sync.min.f32 %f1, %f2, -1;", kBlackwell},
    {kSync, "elect.sync", "elect.sync %r1|%p1, -1;"},
    {kSync, "griddepcontrol", "griddepcontrol.wait; griddepcontrol.launch_dependents;"},
    {kSync, "mbarrier",
     "mbarrier.init.shared.b64 [%r1], 1; mbarrier.arrive.expect_tx.shared.b64 %rd1, [%r1], 16; "
     "mbarrier.try_wait.parity.shared.b64 %p1, [%r1], 0; mbarrier.test_wait.shared.b64 %p1, [%r1], "
     "%rd1; mbarrier.pending_count.b64 %r2, %rd1; mbarrier.inval.shared.b64 [%r1];"},
    {kSync, "clusterlaunchcontrol",
     "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%r1], "
     "[%r2];",
     kBlackwell},

    {kMatrix, "wmma",
     "wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, "
     "[%rd1], 16;"},
    {kMatrix, "mma",
     "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, "
     "%r4}, {%r5, %r6}, {%f1, %f2, %f3, %f4}; mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32 "
     "{%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f1, %f2, %f3, %f4};"},
    {kMatrix, "mma.sp",
     "mma.sp.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%r1, %r2}, {%r3, %r4}, {%r5, %r6}, "
     "{%r1, %r2}, %r7, 0;",
     "sparse matrices"},
    {kMatrix, "mma.block_scale",
     "mma.sync.aligned.kind::mxf8f6f4.block_scale.m16n8k32.row.col.f32.e4m3.e4m3.f32.ue8m0 {%f1, "
     "%f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f1, %f2, %f3, %f4}, %r7, {0, 0}, %r8, "
     "{0, 0};",
     kBlackwell},
    {kMatrix, "ldmatrix, stmatrix",
     "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r1, %r2}, [%r3]; "
     "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r1], {%r2};"},
    {kMatrix, "ldmatrix of 8 bits and less",
     "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r1, %r2}, [%r3];", kBlackwell},
    {kMatrix, "movmatrix", "movmatrix.sync.aligned.m8n8.trans.b16 %r1, %r2;"},

    {kWarpgroup, "wgmma", "wgmma.fence.sync.aligned;",
     "matrix products of four warps, their operands described by TMA"},
    {kWarpgroup, "tcgen05", "tcgen05.wait::ld.sync.aligned;", kBlackwell},

    {kOther, "tex, tld4, txq, istypep, suld, sust, sured, suq",
     "tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd1, {%r1}];", kTexture},
    {kOther, "stacksave, stackrestore, alloca", "stacksave.u64 %rd1;",
     "a stack that grows while a function runs"},
    {kOther, "vadd, vmad and the other video instructions",
     "vadd.s32.u32.s32.sat %r1, %r2.b0, %r3.h0;", kVideo},
    {kOther, "brkpt, trap, nanosleep, pmevent, setmaxnreg",
     "brkpt; trap; nanosleep.u32 100; pmevent 1; setmaxnreg.inc.sync.aligned.u32 64;"},
};

class InstructionTable : public DeviceTest {
 protected:
  // The message if it is refused.
  std::optional<std::string> refusal(const char* text) {
    try {
      load_kernel(text);
    } catch (const std::exception& e) {
      return e.what();
    }
    try {
      const std::uint64_t out = device.allocate(256);
      LaunchConfig nothing;
      nothing.grid.x = 0;  // decoded, but nothing runs
      const LaunchResult r = launch(nothing, "k", out, std::uint64_t{0});
      EXPECT_EQ(r.status, LaunchStatus::invalid_configuration);
    } catch (const Unsupported& e) {
      return e.what();
    }
    return std::nullopt;
  }

  std::string table() {
    struct Section {
      std::string supported;
      std::vector<std::pair<std::string, std::string>> refused;  // why, which
    };
    std::vector<std::pair<std::string, Section>> sections;
    for (const Form& f : kForms) {
      if (sections.empty() || sections.back().first != f.section)
        sections.push_back({f.section, {}});
      Section& s = sections.back().second;
      const std::optional<std::string> message = refusal(f.text);
      const std::string why = f.why;
      EXPECT_EQ(message.has_value(), !why.empty())
          << f.name << ": " << message.value_or("supported");
      if (!message) {
        s.supported += (s.supported.empty() ? "" : ", ") + std::string(f.name);
        continue;
      }
      if (s.refused.empty() || s.refused.back().first != why) s.refused.push_back({why, ""});
      std::string& which = s.refused.back().second;
      which += (which.empty() ? "" : ", ") + std::string(f.name);
    }
    std::string text = "| PTX ISA | supported | refused, and why |\n|---|---|---|\n";
    for (const auto& [name, s] : sections) {
      std::string refused;
      for (const auto& [why, which] : s.refused) {
        refused += fmt::format("{}{} ({})", refused.empty() ? "" : "; ", which, why);
      }
      text += fmt::format("| {} | {} | {} |\n", name, s.supported, refused);
    }
    return text;
  }
};

TEST_F(InstructionTable, TheDocumentSaysWhatTheDecoderDoes) {
  const std::string path = testing::source_dir() + "/docs/simulator.md";
  std::ostringstream read;
  read << std::ifstream(path).rdbuf();
  const std::string document = read.str();
  const std::string begin = "<!-- instructions: made by instruction_table_test -->\n",
                    end = "<!-- end of instructions -->";
  const std::size_t from = document.find(begin), to = document.find(end);
  ASSERT_NE(from, std::string::npos);
  ASSERT_NE(to, std::string::npos);
  const std::size_t first = from + begin.size();
  const std::string expected = table();
  if (std::getenv("ASSAY_WRITE_TABLE") != nullptr) {
    std::ofstream(path) << document.substr(0, first) << expected << document.substr(to);
    return;
  }
  EXPECT_EQ(document.substr(first, to - first), expected)
      << "ASSAY_WRITE_TABLE=1 build/tests/sim_instruction_table_test writes it anew";
}

}  // namespace
}  // namespace assay::sim
