#include "sim/ptx/link.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

namespace assay::sim::ptx {
namespace {

using Renames = std::map<std::string, std::string, std::less<>>;

bool is_defined(const Variable& v) { return !v.is_extern; }
bool is_defined(const Function& f) { return f.defined; }
// Each module declares dynamic shared memory for itself.
bool is_internal(const Variable& v) {
  return v.linkage == Linkage::internal || (v.is_extern && v.space == Space::shared);
}
bool is_internal(const Function& f) { return f.linkage == Linkage::internal && !f.entry; }

// Which declaration of each name counts.
class Declarations {
 public:
  template <class Item>
  void add(const Item& item, bool is_function) {
    const Declaration fresh{&item, is_function, is_defined(item), item.linkage == Linkage::weak};
    const auto [at, first] = chosen_.try_emplace(item.name, fresh);
    if (first) return;
    Declaration& known = at->second;
    if (known.is_function != is_function) {
      throw LinkError(item.name + " is a function in one module and a variable in another");
    }
    if (known.defined && fresh.defined && !known.weak && !fresh.weak) {
      throw LinkError(item.name + " has several definitions");
    }
    if (fresh.defined && (!known.defined || (known.weak && !fresh.weak))) known = fresh;
  }
  template <class Item>
  bool counts(const Item& item) const {
    return is_internal(item) || chosen_.at(item.name).item == &item;
  }

 private:
  struct Declaration {
    const void* item = nullptr;
    bool is_function = false, defined = false, weak = false;
  };
  std::map<std::string, Declaration> chosen_;
};

void rename(const Renames& renames, std::string& name) {
  if (const auto found = renames.find(name); found != renames.end()) name = found->second;
}

void rename(const Renames& renames, Module& module) {
  for (Variable& v : module.variables) {
    if (is_internal(v)) rename(renames, v.name);
  }
  for (Function& f : module.functions) {
    if (is_internal(f)) rename(renames, f.name);
  }
  for_each_use(module, [&](std::string& symbol) { rename(renames, symbol); });
}

// Source files and call sites of all modules have one numbering.
struct PlaceOffsets {
  std::uint32_t files = 0, call_sites = 0;

  void move(Location& where) const {
    if (where.file != 0) where.file += files;
    if (where.inlined_at != 0) where.inlined_at += call_sites;
  }
  void move(Module& module) const {
    for (Variable& v : module.variables) move(v.where);
    for (Function& f : module.functions) {
      move(f.where);
      for (auto* variables : {&f.results, &f.parameters, &f.locals}) {
        for (Variable& v : *variables) move(v.where);
      }
      for (Instruction& i : f.body) move(i.where);
    }
    for (Location& site : module.call_sites) move(site);
  }
};

class Linker {
 public:
  explicit Linker(std::vector<Module> modules) : modules_(std::move(modules)) {}

  Module link() {
    for (const Module& m : modules_) {
      for_each_item(m, [&](const auto& item) {
        if (!is_internal(item)) taken_.insert(item.name);
      });
    }
    for (std::size_t m = 0; m < modules_.size(); ++m) make_unique(m);
    for (const Module& m : modules_) declare(m);
    for (Module& m : modules_) append(m);
    return std::move(linked_);
  }

 private:
  // Gives a suffix to internal names that another module uses too.
  void make_unique(std::size_t at) {
    Renames renames;
    for_each_item(modules_[at], [&](const auto& item) {
      if (is_internal(item) && taken_.contains(item.name)) {
        renames[item.name] = fmt::format("{}@{}", item.name, at);
      }
    });
    for_each_item(modules_[at], [&](const auto& item) { taken_.insert(item.name); });
    if (!renames.empty()) rename(renames, modules_[at]);
  }

  void declare(const Module& module) {
    for_each_item(module, [&](const auto& item) {
      if (!is_internal(item))
        declarations_.add(item, std::is_same_v<std::decay_t<decltype(item)>, Function>);
    });
  }

  void append(Module& module) {
    linked_.version_major = std::max(linked_.version_major, module.version_major);
    linked_.version_minor = std::max(linked_.version_minor, module.version_minor);
    linked_.target = std::max(linked_.target, module.target);
    PlaceOffsets{files_, static_cast<std::uint32_t>(linked_.call_sites.size())}.move(module);
    for (auto& [index, name] : module.files) linked_.files[index + files_] = std::move(name);
    if (!linked_.files.empty()) files_ = linked_.files.rbegin()->first;
    std::ranges::move(module.call_sites, std::back_inserter(linked_.call_sites));
    append(module.variables, linked_.variables);
    append(module.functions, linked_.functions);
  }
  template <class Item>
  void append(std::vector<Item>& from, std::vector<Item>& to) {
    for (Item& item : from) {
      if (declarations_.counts(item)) to.push_back(std::move(item));
    }
  }

  static void for_each_item(const Module& module, const auto& visit) {
    std::ranges::for_each(module.variables, visit);
    std::ranges::for_each(module.functions, visit);
  }

  std::vector<Module> modules_;
  std::set<std::string> taken_;  // all that are not internal, and those of the modules so far
  Declarations declarations_;
  std::uint32_t files_ = 0;  // the highest index of linked_.files
  Module linked_;
};

}  // namespace

Module link(std::vector<Module> modules) {
  if (modules.size() == 1) return std::move(modules.front());
  return Linker(std::move(modules)).link();
}

}  // namespace assay::sim::ptx
