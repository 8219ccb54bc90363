#include "cli/conventions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "util/text.h"

namespace assay::cli {
namespace {

class WrappedHelp final : public CLI::Formatter {
 public:
  std::string make_option_desc(const CLI::Option* option) const override {
    std::string text = option->get_description();
    std::ranges::replace(text, '\n', ' ');
    text = wrapped(text, kHelpColumns - get_column_width(), "");
    if (!text.empty()) text.pop_back();  // the last line's end
    return text;
  }

  std::string make_option_usage(const CLI::Option* option) const override {
    const std::string name =
        make_option_name(option, true) + (option->get_expected_max() > 1 ? "..." : "");
    return option->get_required() ? name : "[" + name + "]";
  }
};

const auto kAny = [](const auto*) { return true; };

constexpr const char* kMayBeEmpty = "may be empty";
constexpr const char* kEmptyValue = "an empty value (is a variable of the shell not set?)";

bool is_marked(CLI::Option& option) {
  try {
    return option.get_validator(kMayBeEmpty) != nullptr;
  } catch (const CLI::OptionNotFound&) {
    return false;
  }
}

void refuse_empty_values(CLI::App& command) {
  for (CLI::Option* option : command.get_options()) {
    if (option->get_items_expected_max() == 0 || is_marked(*option)) continue;  // 0: a flag
    // As a transformation it comes before the option's own checks.
    option->transform([](std::string value) {
      if (value.empty()) throw CLI::ValidationError(kEmptyValue);
      return value;
    });
  }
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands(kAny)) {
    if (!command->get_group().empty()) names.push_back(command->get_name());  // not a hidden one
  }
  return names;
}

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

// What is wrong with words that the command does not know.
std::string about_words(const CLI::App& app, const CLI::App& command,
                        std::vector<std::string> words) {
  const auto is_option = [](const std::string& w) { return w.size() > 1 && w.starts_with('-'); };
  const auto mark = std::ranges::find(words, "--");  // what follows it is no option
  const auto option = std::find_if(words.begin(), mark, is_option);
  if (&command == &app && !words.empty() && option != words.begin())
    return unknown_name("command", words.front(), command_names(app));
  if (option != mark) {
    const std::string name = option->substr(0, option->find('='));
    std::vector<std::string> known = option_names(command);
    if (name.size() == 2)  // every other letter would be near
      std::erase_if(known, [](const std::string& k) { return k.size() == 2; });
    return unknown_name("option", name, known);
  }
  std::erase(words, "--");
  if (words.empty()) return "nothing may follow --";
  for (std::string& word : words) word = fmt::format("'{}'", printable(word, 1));
  return fmt::format("too many arguments: {}", fmt::join(words, " "));
}

std::string about_mistake(const CLI::App* app, const CLI::Error& mistake) {
  const std::vector<CLI::App*> chosen = app->get_subcommands();
  const CLI::App* command = chosen.empty() ? app : chosen.front();
  const bool lacks = dynamic_cast<const CLI::RequiredError*>(&mistake) != nullptr;
  const bool exceeds = dynamic_cast<const CLI::ExtrasError*>(&mistake) != nullptr;
  std::vector<std::string> unknown = command->remaining();
  if (exceeds && unknown.empty()) {  // they stand before the command
    command = app;
    unknown = app->remaining();
  }
  if (lacks && unknown == std::vector<std::string>{"--"}) unknown.clear();  // the library keeps it
  std::string what = printable(mistake.what());
  if ((lacks || exceeds) && !unknown.empty()) {  // a misspelt option is lacking too
    what = about_words(*app, *command, std::move(unknown));
  } else if (lacks && chosen.empty()) {
    what = "no command is given";
  }
  const std::string name = command == app ? "assay" : "assay " + command->get_name();
  return fmt::format("{}: {}\nSee {} --help\n", name, what, name);
}

}  // namespace

CLI::Option* may_be_empty(CLI::Option* option) {
  return option->check([](const std::string&) { return std::string(); }, "", kMayBeEmpty);
}

std::string valueless_option(std::span<const std::string> arguments) {
  for (const std::string_view argument : arguments) {
    if (argument.size() > 3 && argument.starts_with("--") &&
        argument.find('=') + 1 == argument.size())
      return fmt::format("{} {}", argument.substr(0, argument.size() - 1), kEmptyValue);
  }
  return "";
}

void keep_conventions(CLI::App& app) {
  const auto help = std::make_shared<WrappedHelp>();
  app.formatter(help);
  app.failure_message(about_mistake);
  refuse_empty_values(app);
  for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    command->formatter(help);
    refuse_empty_values(*command);
  }
}

}  // namespace assay::cli
