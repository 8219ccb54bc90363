#include "site/site.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <regex>
#include <set>

#include "../report/boards.h"
#include "../store/store_samples.h"
#include "site/frame.h"
#include "site/links.h"
#include "site/pages/cell_page.h"
#include "site/pages/overview_pages.h"
#include "site/site_view.h"
#include "support/error_of.h"
#include "support/temporary_folder.h"
#include "util/files.h"

namespace assay::site {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kHostileName = "<img src=x onerror=alert(1)>";
constexpr const char* kHostileCode =
    "// </code></pre><script>alert(2)</script>\nint f() { return 1; }\n";

using Pages = std::map<std::string, std::string>;  // path -> text

Pages pages_of(const fs::path& folder) {
  Pages pages;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file())
      pages[entry.path().lexically_relative(folder).string()] = read_file(entry.path());
  }
  return pages;
}

std::string decoded(const std::string& link) {
  std::string out;
  for (std::size_t i = 0; i < link.size(); ++i) {
    if (link[i] != '%') {
      out += link[i];
      continue;
    }
    out += static_cast<char>(std::stoi(link.substr(i + 1, 2), nullptr, 16));
    i += 2;
  }
  return out;
}

class Site : public ::testing::Test {
 protected:
  // The full board of the reports' tests, plus an answer in CUDA that needs a GPU, one that has
  // findings, and one whose every text is hostile.
  void SetUp() override {
    entries_ = testing::full_entries();
    CellResult hostile = testing::flawed_cell(specs_[0]);
    hostile.key.model = kHostileName;
    hostile.build.source_hash = add_submission(kHostileName, specs_[0].name, kHostileCode);
    CaseResult& failed = testing::case_of(hostile, "core_b");
    failed.detail = "</dd><script>alert(3)</script> at submission.cpp:2 \xff\xe2\x80\xae";
    failed.shape = "\"><svg onload=alert(4)>";
    hostile.build.log = "submission.cpp:2:5: warning: <b>bold</b>";
    // The longest function lies on a line that nothing else names.
    hostile.code = CodeFacts{.files = 1, .code_lines = 1, .functions = 1};
    hostile.code->longest = CodePlace{"<b>f</b>", "submission.cpp", 1, 2};
    hostile.mutants[3].reason = "<i>\x1b[31m";
    hostile.mutants[3].verdict = TestVerdict::accepted;
    entries_.push_back(testing::graded_entry(specs_[0], hostile));
    CellResult simulated = testing::sample_cell(specs_[1], "textbook");
    simulated.key.device = Device::sim;
    for (CaseResult& r : simulated.cases) {
      r.verdict = Verdict::needs_gpu;
      r.samples.clear();
    }
    BoardEntry e = testing::graded_entry(specs_[1], simulated);
    e.score.modelled_on = "H200";
    entries_.push_back(e);
    store::ResultStore store(results());
    store.start(testing::run_start("a-run"));
    for (const BoardEntry& entry : entries_) store.add(entry);
    store.finish();
  }

  // Returns the hash of the sources.
  std::string add_submission(const std::string& model, const std::string& challenge,
                             const std::string& code) {
    const fs::path folder = submissions() / model / challenge;
    fs::create_directories(folder);
    write_file_atomically(folder / "submission.cpp", code);
    return source_hash(read_submissions(folder, model, challenge, "").front());
  }

  fs::path results() const { return folder_.path / "results"; }
  fs::path submissions() const { return folder_.path / "submissions"; }
  fs::path out() const { return folder_.path / "site"; }
  fs::path workshop() const { return folder_.path / ".site.assay-board.tmp"; }

  SiteReport write(std::size_t jobs = 2) {
    board_ = store::read_board(results());
    SiteInputs in;
    in.board = &board_;
    in.specs = &specs_;
    in.results = results();
    in.submissions = submissions();
    in.jobs = jobs;
    return write_site(in, out());
  }

  Pages written() {
    write();
    return pages_of(out());
  }

  CellKey key(const std::string& model, std::size_t challenge, Device device = Device::cpu) const {
    return {model, specs_[challenge].name, "", device};
  }

  testing::TemporaryFolder folder_;
  std::vector<ChallengeSpec> specs_ = testing::two_specs();
  std::vector<BoardEntry> entries_;
  Scoreboard board_;
};

TEST_F(Site, EveryLinkLeadsToAPageOrALineOfOne) {
  const Pages pages = written();
  const std::regex attribute("<(?:a|link)[^>]* href=\"?([^\" >]*)");
  std::size_t links = 0;
  for (const auto& [path, text] : pages) {
    if (!path.ends_with(".html")) continue;
    for (std::sregex_iterator at(text.begin(), text.end(), attribute), end; at != end; ++at) {
      const std::string target = (*at)[1];
      if (target == "data:,") continue;
      ++links;
      if (target.starts_with('#')) {
        const std::string id = target.substr(1);
        EXPECT_TRUE(text.find("id=\"" + id + "\"") != std::string::npos ||
                    text.find("id=" + id + ">") != std::string::npos)
            << path << " " << target;
        continue;
      }
      const fs::path to = (fs::path(path).parent_path() / decoded(target)).lexically_normal();
      EXPECT_TRUE(pages.contains(to.string())) << path << " -> " << target;
    }
  }
  EXPECT_GT(links, 100U);
  EXPECT_THAT(pages.at(cell_page(key(kHostileName, 0))),
              HasSubstr("<a href=\"#f0-1\">submission.cpp:1</a>"));
}

TEST_F(Site, EveryColumnHasAName) {
  const std::regex head("<th scope=col([^>]*)>(<?)");
  std::size_t charts = 0;
  for (const auto& [path, text] : written()) {
    for (std::sregex_iterator at(text.begin(), text.end(), head), end; at != end; ++at) {
      if ((*at)[2].length() == 0) continue;
      ++charts;
      EXPECT_THAT((*at)[1].str(), HasSubstr("aria-label=chart")) << path;
    }
  }
  EXPECT_GT(charts, 10U);
}

TEST_F(Site, MeansOfAttemptsStandWhereThereAreSeveral) {
  const Pages pages = written();
  EXPECT_THAT(pages.at(challenge_page(specs_[1].name, Device::cpu)),
              HasSubstr(">mean of attempts"));
  EXPECT_THAT(pages.at(challenge_page(specs_[0].name, Device::cpu)),
              Not(HasSubstr(">mean of attempts")));
}

TEST_F(Site, EveryCellModelAndChallengeHasAPage) {
  const Pages pages = written();
  for (const BoardEntry& e : entries_) {
    EXPECT_TRUE(pages.contains(cell_page(e.cell.key))) << to_string(e.cell.key);
    EXPECT_TRUE(pages.contains(model_page(e.cell.key.model))) << e.cell.key.model;
    EXPECT_TRUE(pages.contains(challenge_page(e.cell.key.challenge, e.cell.key.device)));
  }
  EXPECT_TRUE(pages.contains("index.html"));
}

TEST_F(Site, ThePairsThatMatterStandSideBySide) {
  const Pages pages = written();
  const auto pairs = make_site_view(board_, specs_).pairs;
  ASSERT_THAT(pairs, Contains(ModelPair{"textbook", "tuned"}));
  for (const ModelPair& pair : pairs) {
    const std::string path = pair_page(pair.a, pair.b), title = pair.a + " against " + pair.b;
    EXPECT_THAT(pages.at(path), HasSubstr("<h1>" + escaped(title) + "</h1>"));
    EXPECT_THAT(pages.at(path), HasSubstr("Difference (95 %)"));
    for (const std::string& from : {std::string("index.html"), model_page(pair.a)}) {
      EXPECT_THAT(pages.at(from), HasSubstr("\"" + link(from, path) + "\">" + escaped(title)))
          << from;
    }
  }
  EXPECT_THAT(pairs, Contains(::testing::Field(&ModelPair::b, kHostileName)));
}

TEST(CostChart, StandsWhereCostsAreKnown) {
  const std::vector<ChallengeSpec> specs = testing::two_specs();
  Scoreboard board;
  for (const char* model : {"cheap", "dear", "unknown"}) {
    BoardRow row = testing::graded_row(specs[0], testing::sample_cell(specs[0], model));
    board.entries[row.key] = row;
  }
  EXPECT_THAT(ranking_document(make_site_view(board, specs), 1), Not(HasSubstr("Cost and score")));
  for (auto& [key, row] : board.entries) {
    if (key.model == "cheap") row.attempt.cost_usd = 0.01;
    if (key.model == "dear") row.attempt.cost_usd = 2.5;
  }
  const std::string page = ranking_document(make_site_view(board, specs), 1);
  const std::string chart = page.substr(page.find("<h3>Cost and score</h3>"));
  EXPECT_THAT(chart, HasSubstr("US dollars an attempt"));
  EXPECT_THAT(chart, HasSubstr(">dear</a><td class=n>$2.5"));
  EXPECT_THAT(chart, Not(HasSubstr(">unknown</a>")));
}

TEST_F(Site, CodeIsToldOfACellAsText) {
  const ChallengeSpec& spec = specs_[0];
  CellResult cell = testing::sample_cell(spec, "coder");
  cell.build.source_hash = add_submission("coder", spec.name, "int f() {\n  return 1;\n}\n");
  cell.code = CodeFacts{.files = 1, .code_lines = 3, .functions = 1};
  cell.code->longest = CodePlace{"f", "submission.cpp", 1, 3};
  cell.code->warnings = CompilerWarnings{1, {"submission.cpp:2:3: warning: <b>odd</b>"}, false};
  store::ResultStore store(results());
  store.start(testing::run_start("another-run"));
  store.add(testing::graded_entry(spec, cell));
  store.finish();
  const Pages pages = written();
  const std::string& page = pages.at(cell_page(cell.key));
  EXPECT_THAT(page, HasSubstr("<h2>Code, not scored</h2>"));
  EXPECT_THAT(page, HasSubstr("<dt>size<dd>3 lines of code"));
  EXPECT_THAT(page, HasSubstr(": warning: &lt;b&gt;odd&lt;/b&gt;"));
  EXPECT_THAT(page, HasSubstr("<a href=\"#f0-2\">submission.cpp:2</a>"));
  EXPECT_THAT(page, HasSubstr("<mark id=\"f0-2\">"));
  EXPECT_THAT(pages.at(cell_page(key("tuned", 0))), HasSubstr("<dt>size<dd>not known"));
}

TEST_F(Site, TheSameBoardGivesTheSameBytes) {
  const Pages first = written();
  write(1);
  EXPECT_EQ(pages_of(out()), first);
}

// A search for known attacks would miss what nobody thought of: instead, all tags must be known
// ones.
TEST_F(Site, NothingOfOthersBecomesMarkup) {
  const std::regex tag("<([A-Za-z][^\\s>/]*)");
  const std::set<std::string> known{
      "html",  "meta",   "link",   "title",  "body",  "header",  "a",       "nav",
      "main",  "h1",     "h2",     "h3",     "h4",    "p",       "ul",      "ol",
      "li",    "dl",     "dt",     "dd",     "span",  "strong",  "small",   "section",
      "div",   "table",  "thead",  "tbody",  "tr",    "th",      "td",      "svg",
      "path",  "circle", "rect",   "line",   "text",  "desc",    "figure",  "figcaption",
      "form",  "label",  "select", "option", "input", "output",  "code",    "pre",
      "b",     "i",      "u",      "em",     "mark",  "details", "summary", "footer",
      "script"};
  for (const auto& [path, text] : written()) {
    if (!path.ends_with(".html")) continue;
    std::string markup = text;
    // Our own script compares with "<".
    if (const auto at = markup.find(script()); at != std::string::npos)
      markup.erase(at, script().size());
    for (std::sregex_iterator at(markup.begin(), markup.end(), tag), end; at != end; ++at)
      EXPECT_THAT(known, Contains((*at)[1].str())) << path;
    EXPECT_EQ(markup.find("alert(2)</script"), markup.npos) << path;
    EXPECT_EQ(markup.find("<svg onload"), markup.npos) << path;
    EXPECT_EQ(markup.find('\xff'), markup.npos) << path;
    EXPECT_EQ(markup.find('\x1b'), markup.npos) << path;
    EXPECT_EQ(markup.find("\xe2\x80\xae"), markup.npos) << path;
  }
}

TEST_F(Site, HostileTextIsThereAsText) {
  const Pages pages = written();
  const std::string& page = pages.at(cell_page(key(kHostileName, 0)));
  EXPECT_THAT(page, HasSubstr("&lt;img src=x onerror=alert(1)&gt;"));
  EXPECT_THAT(page, HasSubstr("&lt;/dd&gt;&lt;script&gt;alert(3)&lt;/script&gt;"));
  EXPECT_THAT(page, HasSubstr("[U+202E]"));
  EXPECT_THAT(page, HasSubstr("<i>// &lt;/code&gt;&lt;/pre&gt;&lt;script&gt;"));
  // Where the text names a line of the source, it links to it.
  EXPECT_THAT(page, HasSubstr("<a href=\"#f0-2\">submission.cpp:2</a>"));
  EXPECT_THAT(page, HasSubstr("<mark id=\"f0-2\"><b>int</b> f()"));
}

TEST_F(Site, APageMayRunTheSitesScriptOrNone) {
  EXPECT_EQ(policy_hash(""), "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
  std::size_t scripted = 0, bare = 0;
  for (const auto& [path, text] : written()) {
    if (!path.ends_with(".html")) continue;
    const bool has_script = text.find("<script>") != std::string::npos;
    EXPECT_THAT(text, HasSubstr("default-src &#39;none&#39;")) << path;
    EXPECT_THAT(text,
                HasSubstr(has_script ? "script-src &#39;" + escaped(policy_hash(script())) + "&#39;"
                                     : "script-src &#39;none&#39;"))
        << path;
    EXPECT_EQ(has_script, !path.starts_with("cells/") && !path.starts_with("pairs/")) << path;
    ++(has_script ? scripted : bare);
  }
  EXPECT_GT(scripted, 3U);
  EXPECT_GT(bare, 3U);
}

TEST_F(Site, AFaultOfTheHouseIsSaidLoudly) {
  BoardEntry found = entries_.front();
  for (Mutant& m : found.cell.mutants) {
    if (m.subject == "par") m = {"par", true, TestVerdict::house_fault, "par is wrong on V=5", 0};
  }
  found.cell.key.model = "finder";
  store::ResultStore store(results());
  store.start(testing::run_start("another-run"));
  store.add(testing::graded_entry(specs_[0], found.cell));
  store.finish();
  std::size_t pages = 0;
  for (const auto& [path, text] : written()) {
    if (text.find("A fault of the house:</strong> par is wrong on V=5") == std::string::npos)
      continue;
    ++pages;
    EXPECT_THAT(text, HasSubstr(fmt::format(" of {} implementations judged rightly",
                                            found.cell.mutants.size() - 1)));
  }
  EXPECT_EQ(pages, 1u);
}

TEST_F(Site, WhatIsMissingIsSaid) {
  for (const auto& [key, row] : store::read_board(results()).entries) {
    if (key == this->key("textbook", 0)) fs::remove(results() / row.evidence.path);
    if (key == this->key("textbook", 1)) write_file_atomically(results() / row.evidence.path, "{}");
  }
  add_submission(kHostileName, specs_[0].name, "int changed;");
  const SiteReport report = write();
  EXPECT_EQ(report.without_evidence, 2U);
  EXPECT_EQ(report.without_sources, report.cells);
  const Pages pages = pages_of(out());
  EXPECT_THAT(pages.at(cell_page(key("textbook", 0))), HasSubstr("is missing"));
  EXPECT_THAT(pages.at(cell_page(key("textbook", 1))), HasSubstr("not the file that this score"));
  EXPECT_THAT(pages.at(cell_page(key("textbook", 1))),
              HasSubstr("<code>assay run --resume</code>"));
  EXPECT_THAT(pages.at(cell_page(key("textbook", 0))), HasSubstr("Points"));
  EXPECT_THAT(pages.at(cell_page(key(kHostileName, 0))),
              HasSubstr("the sources have changed since this was measured"));
  EXPECT_THAT(pages.at(cell_page(key("tuned", 0))),
              HasSubstr("the answer is not in the folder of submissions"));
}

TEST_F(Site, CommandsInProseAreCode) {
  const Pages pages = written();
  EXPECT_THAT(pages.at("index.html"), HasSubstr("<code>assay run --stale</code> measures"));
  EXPECT_THAT(pages.at(cell_page(key("quickly", 1))),
              HasSubstr("<code>assay run --stale</code> measures it again"));
}

TEST_F(Site, NotRunIsNotZeroAndTheSimulatorsSpeedIsModelled) {
  const Pages pages = written();
  const std::string& page = pages.at(cell_page(key("textbook", 1, Device::sim)));
  EXPECT_THAT(page, HasSubstr(">not run<"));
  EXPECT_THAT(page, Not(HasSubstr("<strong>0.0")));
  EXPECT_THAT(page, HasSubstr("modelled as on H200, never measured"));
  EXPECT_THAT(pages.at("index.html"), HasSubstr("speeds are modelled"));
}

TEST_F(Site, AFolderThatHoldsAnythingElseIsLeftAlone) {
  fs::create_directories(out());
  write_file_atomically(out() / "thesis.txt", "x");
  EXPECT_THAT(testing::error_of([&] { write(); }), HasSubstr("was not written by `assay board`"));
  EXPECT_EQ(pages_of(out()), (Pages{{"thesis.txt", "x"}}));
  EXPECT_FALSE(fs::exists(workshop()));
}

TEST_F(Site, FoldersBesideItAreLeftAlone) {
  const fs::path beside = out().string() + ".tmp";
  fs::create_directories(beside);
  write_file_atomically(beside / "thesis.txt", "x");
  write();
  EXPECT_EQ(pages_of(beside), (Pages{{"thesis.txt", "x"}}));
}

TEST_F(Site, ALinkStaysOneAndItsTargetGetsTheSite) {
  const Pages pages = written();
  const fs::path target = out().string() + "-there";
  fs::rename(out(), target);
  write_file_atomically(target / "stale.html", "old");
  fs::create_directory_symlink(target, out());
  write();
  EXPECT_TRUE(fs::is_symlink(out()));
  EXPECT_EQ(pages_of(target), pages);
}

TEST_F(Site, AnOlderSiteIsReplacedWhole) {
  const Pages first = written();
  write_file_atomically(out() / "stale.html", "old");
  fs::create_directories(workshop());  // left by a kill
  write_file_atomically(workshop() / "half.html", "half");
  EXPECT_EQ(written(), first);
  EXPECT_FALSE(fs::exists(workshop()));
}

TEST_F(Site, NoNameOfABoardIsAPath) {
  BoardEntry e = entries_.front();
  e.cell.key.model = "..";
  e.cell.key.attempt = "..";
  {
    store::ResultStore store(results());
    store.start(testing::run_start("another-run"));
    store.add(e);
    store.finish();
  }
  const Pages pages = written();
  const std::string page = cell_page(e.cell.key);
  EXPECT_THAT(page, Not(HasSubstr("..")));
  EXPECT_TRUE(pages.contains(page));
}

TEST(LargeBoard, PagesOfCellsAreBrief) {
  const ChallengeSpec spec = testing::sample_spec();
  const BoardEntry entry = testing::graded_entry(spec, testing::flawed_cell(spec));
  const BoardRow row = testing::row_of(entry);
  CellView view;
  view.row = &row;
  view.spec = &spec;
  view.evidence = entry.cell;
  view.sources = {{"submission.cpp", "int one;\nint two;\nint three;\n"}};
  view.source_bytes = 20;
  const std::string whole = cell_document(view);
  EXPECT_THAT(whole, HasSubstr("<td>core_a<td>OK"));
  EXPECT_THAT(whole, HasSubstr("<b>int</b> two;"));
  EXPECT_THAT(whole, Not(HasSubstr("<b>int</b> three;")));
  EXPECT_THAT(whole, HasSubstr("Cut here: 11 more bytes"));
  view.brief = true;
  const std::string brief = cell_document(view);
  EXPECT_THAT(brief, HasSubstr("Passed: edge_a, edge_b"));
  EXPECT_THAT(brief, Not(HasSubstr("<td>core_a<td>OK")));
  EXPECT_THAT(brief, HasSubstr("<td>core_b<td>"));  // the case failed
  EXPECT_LT(brief.size(), whole.size());
}

TEST(LargeBoard, RankingsHaveAHundredModelsAPage) {
  const std::vector<ChallengeSpec> specs = testing::two_specs();
  Scoreboard board;
  for (int i = 0; i < 250; ++i) {
    BoardRow row = testing::graded_row(specs[0], testing::sample_cell(specs[0]));
    row.key.model = "model-" + std::to_string(i);
    board.entries[row.key] = row;
  }
  const SiteView view = make_site_view(board, specs);
  ASSERT_EQ(ranking_pages(view), 3U);
  std::set<std::string> seen;
  const std::regex model("<th scope=row><a href=\"[^\"]*\">(model-[0-9]+)</a>");
  for (std::size_t page = 1; page <= 3; ++page) {
    const std::string text = ranking_document(view, page);
    std::set<std::string> here;
    for (std::sregex_iterator at(text.begin(), text.end(), model), end; at != end; ++at)
      here.insert((*at)[1]);
    EXPECT_EQ(here.size(), page < 3 ? kModelsPerPage : 50U);
    seen.merge(here);
  }
  EXPECT_EQ(seen.size(), 250U);
}

TEST(SiteOfNothing, SaysThatNothingWasMeasured) {
  const testing::TemporaryFolder folder;
  const Scoreboard board;
  const std::vector<ChallengeSpec> specs = testing::two_specs();
  SiteInputs in;
  in.board = &board;
  in.specs = &specs;
  in.results = folder.path;
  write_site(in, folder.path / "site");
  EXPECT_THAT(read_file(folder.path / "site/index.html"),
              HasSubstr("Nothing has been measured yet"));
}

}  // namespace
}  // namespace assay::site
