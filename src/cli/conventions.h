// What holds for every command, whatever options it declares.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace assay::cli {

inline constexpr std::size_t kHelpColumns = 100;

// For the whole program, once all commands are declared:
// - Descriptions in the help are wrapped, whatever lines they were written in.
// - An option or argument that is given as "" is refused. Usually a variable of a shell is not set,
//   and the default would work on another folder than was meant.
// - A command line that cannot be read gets an error that names the command, and the nearest name
//   to one that is unknown.
void keep_conventions(CLI::App&);

// What to say of "--name=" among the arguments, which the library would take for "--name" and the
// next word; "" if there is none.
std::string valueless_option(std::span<const std::string> arguments);

// For an option to which "" means something.
CLI::Option* may_be_empty(CLI::Option*);

}  // namespace assay::cli
