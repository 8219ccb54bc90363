#include "cli/describe.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>

#include "cli/roff.h"

namespace assay::cli {
namespace {

// --- what CLI11 knows ---------------------------------------------------------------------------

// An empty group hides a command from --help and from these descriptions.
std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* command) { return !command->get_group().empty(); });
}

std::vector<const CLI::Option*> options_of(const CLI::App& app) {
  return app.get_options([](const CLI::Option* option) { return !option->get_positional(); });
}

std::vector<const CLI::Option*> positionals_of(const CLI::App& app) {
  return app.get_options([](const CLI::Option* option) { return option->get_positional(); });
}

// "--model", "-m".
std::vector<std::string> flags_of(const CLI::Option& option) {
  std::vector<std::string> flags;
  for (const std::string& name : option.get_lnames()) flags.push_back("--" + name);
  for (const std::string& name : option.get_snames()) flags.push_back("-" + name);
  return flags;
}

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

// The choices in the braces of "TEXT:{auto,cpu,sim}".
std::vector<std::string> choices_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::size_t open = type.find('{'), close = type.find('}');
  if (open == std::string::npos || close == std::string::npos) return {};
  return CLI::detail::split(type.substr(open + 1, close - open - 1), ',');
}

// --- the manual page
// ------------------------------------------------------------------------------

// Text with its line breaks and columns preserved.
std::string as_it_stands(const std::string& text) { return ".nf\n" + roff(text) + "\n.fi\n"; }

std::string value_name(const CLI::Option& option) {
  if (!takes_value(option)) return {};
  const std::vector<std::string> choices = choices_of(option);
  if (!choices.empty()) return fmt::format("{}", fmt::join(choices, "|"));
  const std::string type = option.get_type_name();
  return type.substr(0, type.find(':'));
}

std::string man_option(const CLI::Option& option) {
  const std::string name = option.get_positional()
                               ? option.get_name(true)
                               : fmt::format("{}", fmt::join(flags_of(option), ", "));
  std::string text = fmt::format(".TP\n\\fB{}\\fR", roff(name));
  if (const std::string value = value_name(option); !value.empty()) {
    text += fmt::format(" \\fI{}\\fR", roff(value));
  }
  text += "\n" + roff(option.get_description());
  if (!option.get_default_str().empty()) {
    text += roff(fmt::format(" (default: {})", option.get_default_str()));
  }
  if (!option.get_envname().empty()) text += roff(fmt::format(" (or ${})", option.get_envname()));
  return text + "\n";
}

std::string man_options(const CLI::App& app) {
  std::string text;
  for (const CLI::Option* option : positionals_of(app)) text += man_option(*option);
  for (const CLI::Option* option : options_of(app)) text += man_option(*option);
  return text;
}

std::string man_command(const CLI::App& command) {
  std::string names;
  for (const CLI::Option* option : positionals_of(command)) {
    names += option->get_required() ? " " + option->get_name(true)
                                    : fmt::format(" [{}]", option->get_name(true));
  }
  std::string text = fmt::format(".SS assay {}{} [options]\n{}\n", roff(command.get_name()),
                                 roff(names), roff(command.get_description()));
  text += man_options(command);
  if (!command.get_footer().empty()) text += ".PP\n" + as_it_stands(command.get_footer());
  return text;
}

// --- completion
// -----------------------------------------------------------------------------------

std::vector<std::string> values_of(const CLI::Option& option,
                                   const std::vector<std::string>& challenges) {
  const bool is_challenge = option.check_lname("challenge") ||
                            CLI::detail::to_lower(option.get_name(true)) == "challenge";
  return is_challenge ? challenges : choices_of(option);
}

// Everything that can begin a word of the command.
std::vector<std::string> words_of(const CLI::App& app, const std::vector<std::string>& challenges) {
  std::vector<std::string> words;
  for (const CLI::App* command : commands_of(app)) words.push_back(command->get_name());
  for (const CLI::Option* option : positionals_of(app)) {
    for (const std::string& value : values_of(*option, challenges)) words.push_back(value);
  }
  for (const CLI::Option* option : options_of(app)) {
    for (const std::string& flag : flags_of(*option)) words.push_back(flag);
  }
  return words;
}

// Lines of a shell `case` over "command option": completions for the option's value. Options with
// unknown values complete to files.
std::string completion_of_values(const CLI::App& app, const std::string& command,
                                 const std::vector<std::string>& challenges) {
  std::string lines;
  for (const CLI::Option* option : options_of(app)) {
    if (!takes_value(*option)) continue;
    std::vector<std::string> patterns;
    for (const std::string& flag : flags_of(*option)) {
      patterns.push_back(fmt::format("'{} {}'", command, flag));
    }
    const std::vector<std::string> values = values_of(*option, challenges);
    lines += fmt::format("    {}) ", fmt::join(patterns, " | "));
    lines += values.empty() ? "COMPREPLY=(); return ;;\n"
                            : fmt::format("words='{}' ;;\n", fmt::join(values, " "));
  }
  return lines;
}

std::string completion_of_words(const CLI::App& app, const std::string& command,
                                const std::vector<std::string>& challenges) {
  return fmt::format("    '{} '*) words='{}' ;;\n", command,
                     fmt::join(words_of(app, challenges), " "));
}

}  // namespace

std::string man_page(const CLI::App& app, const std::string& version, const std::string& keys) {
  std::string text =
      fmt::format(".TH ASSAY 1 \"\" \"assay {}\" \"User Commands\"\n", roff(version));
  text += ".SH NAME\nassay \\- grades kernels that language models write\n";
  text += ".SH SYNOPSIS\n\\fBassay\\fR [\\fB\\-\\-root\\fR \\fIROOT\\fR] \\fICOMMAND\\fR ...\n";
  text += ".SH DESCRIPTION\n" + roff(app.get_description()) + "\n";
  text += ".SH OPTIONS\n" + man_options(app);
  text += ".SH COMMANDS\n";
  for (const CLI::App* command : commands_of(app)) text += man_command(*command);
  text += ".SH NOTES\n" + as_it_stands(app.get_footer());
  return text + ".SH KEYS OF RESULTS\n" + keys;
}

std::string bash_completion(const CLI::App& app, const std::vector<std::string>& challenges) {
  std::vector<std::string> names;
  std::string values = completion_of_values(app, "", challenges), words;
  for (const CLI::App* command : commands_of(app)) {
    names.push_back(command->get_name());
    values += completion_of_values(*command, command->get_name(), challenges);
    words += completion_of_words(*command, command->get_name(), challenges);
  }
  words += completion_of_words(app, "", challenges);
  return fmt::format(R"(# Completion of assay for bash; made by `assay completion bash`.
_assay() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD - 1]}} command='' words='' i
  for ((i = 1; i < COMP_CWORD; ++i)); do
    case ${{COMP_WORDS[i]}} in
      --root) ((++i)) ;;
      {0})
        command=${{COMP_WORDS[i]}}
        break
        ;;
    esac
  done
  case "$command $previous" in
{1}{2}  esac
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o default -F _assay assay
)",
                     fmt::join(names, " | "), values, words);
}

}  // namespace assay::cli
