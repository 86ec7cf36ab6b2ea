//! Numbers, handles, texts, statuses and arrays of them: how they come in, and what becomes of them.

use super::writer::Writer;
use super::{is_buffer, is_handle, length_of};
use crate::{Array, Direction, Param};

impl<'a> Writer<'a> {
    pub(super) fn scalar(&mut self, param: &'a Param, index: Option<usize>) -> Result<(), String> {
        let name = &param.name;
        if param.kind.ends_with("STATUS") {
            return self.status(param, index);
        }
        if param.kind == "STRING" {
            return self.text(param, index);
        }
        if param.kind == "REQUEST" && param.dir != Direction::Out {
            return self.request(param, index);
        }
        match self.c_type(param).as_str() {
            "void *" if param.kind == "TOOL_MPI_OBJ" => {
                let i = index.ok_or("an object that is not given")?;
                self.declare(format!("void *{name} = call.arg ({i}).isempty () ? nullptr"));
                self.declare(format!("  : call.handle<void *> ({i}, \"{name}\");"));
                self.pass(param, format!("{name} ? &{name} : nullptr"));
                return Ok(());
            }
            "void *" | "char **" | "char ***" | "..." => {
                if ["ARGUMENT_LIST", "VARARGS"].contains(&param.kind.as_str()) {
                    self.pass(param, "nullptr");
                    return Ok(());
                }
                return Err(format!("parameter {name} of kind {} has no rule", param.kind));
            }
            _ => {}
        }
        if ["ARGUMENT_COUNT"].contains(&param.kind.as_str()) {
            self.pass(param, "0");
            return Ok(());
        }
        if param.func.is_some() {
            return Err(format!("parameter {name} is a function"));
        }
        if index.is_none() && param.dir != Direction::Out {
            return self.implied(param);
        }
        self.number(param, index)
    }

    fn status(&mut self, param: &'a Param, index: Option<usize>) -> Result<(), String> {
        let name = &param.name;
        match param.dir {
            Direction::Out => {
                let place = self.outputs.len() + 1;
                self.declare(format!("MPI_Status {name} {{}};"));
                let value = format!("call.wants ({place}) ? call.to_value ({name}) : Value ()");
                self.outputs.push((name.clone(), value));
                let ignored = self.param("flag").is_none() && param.role.allows("MPI_STATUS_IGNORE");
                let passed = if ignored {
                    format!("call.wants ({place}) ? &{name} : MPI_STATUS_IGNORE")
                } else {
                    format!("&{name}")
                };
                self.pass(param, passed);
            }
            dir => {
                let i = index.ok_or("a status that is not given")?;
                self.declare(format!("MPI_Status {name} = call.status ({i}, \"{name}\");"));
                self.pass(param, format!("&{name}"));
                if dir == Direction::Inout {
                    self.outputs.push((name.clone(), name.clone()));
                }
            }
        }
        Ok(())
    }

    fn request(&mut self, param: &'a Param, index: Option<usize>) -> Result<(), String> {
        let name = &param.name;
        let i = index.ok_or("a request that is not given")?;
        if param.dir == Direction::Inout {
            self.declare(format!("Requests {name} = call.requests ({i}, \"{name}\");"));
            self.declare(format!("call.check_length ({i}, \"{name}\", {name}.size (), 1);"));
            self.pass(param, format!("{name}.now.data ()"));
            self.requests_around(name, i);
        } else {
            self.declare(format!("auto {name} = call.handle<MPI_Request> ({i}, \"{name}\");"));
            self.pass(param, if param.pointer == Some(true) { format!("&{name}") } else { name.clone() });
        }
        Ok(())
    }

    /// A handle or a number.
    fn number(&mut self, param: &'a Param, index: Option<usize>) -> Result<(), String> {
        let name = &param.name;
        let c_type = self.c_type(param);
        let handle = is_handle(self.table, param);
        let convert = if handle { "handle" } else { "number" };
        match param.dir {
            Direction::In => {
                let i = index.ok_or("a number that is not given")?;
                self.declare(format!("auto {name} = call.{convert}<{c_type}> ({i}, \"{name}\");"));
                if !self.function.describes_buffer(param) || !self.params().any(is_buffer) {
                    self.pass(param, name.clone());
                }
            }
            Direction::Inout => {
                let i = index.ok_or("a number that is not given")?;
                self.declare(format!("auto {name} = call.{convert}<{c_type}> ({i}, \"{name}\");"));
                self.declare(format!("call.variable ({i}, \"{name}\");"));
                self.pass(param, format!("&{name}"));
                let value = if handle { name.clone() } else { format!("static_cast<double> ({name})") };
                self.after.push(format!("call.assign ({i}, \"{name}\", call.to_value ({value}));"));
            }
            Direction::Out if self.goes_on() && param.kind != "REQUEST" => {
                // MPI may write it later.
                self.declare(format!("auto {name} = std::make_shared<{c_type}> ();"));
                self.pass(param, format!("{name}.get ()"));
                self.outputs.push((name.clone(), format!("*{name}")));
            }
            Direction::Out => {
                self.declare(format!("{c_type} {name} {{}};"));
                self.pass(param, format!("&{name}"));
                // A text and a list know how long they are.
                let listed = self.params().any(|p| p.kind == "STATUS" && p.array.is_some());
                let hidden = param.kind == "STRING_LENGTH" || (param.kind == "ARRAY_LENGTH" && listed);
                if !hidden {
                    let value = if handle { name.clone() } else { format!("static_cast<double> ({name})") };
                    self.outputs.push((name.clone(), value));
                }
            }
        }
        Ok(())
    }

    /// Statements around a call that may start or complete requests.
    pub(super) fn requests_around(&mut self, name: &str, i: usize) {
        if self.function.name.starts_with("MPI_Start") {
            self.before.push(format!("call.starting ({name});"));
        } else {
            self.after.push(format!("call.set_requests ({i}, \"{name}\", {name});"));
            self.after.push(format!("call.settle ({name});"));
        }
    }

    /// A number that follows from other arguments: the length of arrays, or what describes a buffer.
    pub(super) fn implied(&mut self, param: &'a Param) -> Result<(), String> {
        let name = &param.name;
        if let Some(expression) = self.exceptions.lengths.get(&self.function.name).and_then(|of| of.get(name)) {
            self.declare(format!("const int {name} = {expression};"));
            self.pass(param, name.clone());
            return Ok(());
        }
        if ["STRING_LENGTH", "INFO_VALUE_LENGTH"].contains(&param.kind.as_str()) {
            self.declare(format!("int {name} = TEXT_BYTES;"));
            self.pass(param, format!("&{name}"));
            return Ok(());
        }
        // Passed later: `array` and `lengths_of_buffers` know it.
        Ok(())
    }

    pub(super) fn text(&mut self, param: &'a Param, index: Option<usize>) -> Result<(), String> {
        let name = &param.name;
        match (param.dir, index) {
            (Direction::In, Some(i)) => {
                self.declare(format!("const std::string {name} = call.text ({i}, \"{name}\");"));
                self.pass(param, format!("{name}.c_str ()"));
            }
            (Direction::Out, _) => {
                self.declare(format!("std::vector<char> {name} (TEXT_BYTES);"));
                self.pass(param, format!("{name}.data ()"));
                self.outputs.push((name.clone(), format!("std::string ({name}.data ())")));
            }
            _ => return Err(format!("text {name} has no rule")),
        }
        Ok(())
    }

    pub(super) fn array(&mut self, param: &'a Param, index: Option<usize>) -> Result<(), String> {
        let name = &param.name;
        let c_type = self.c_type(param);
        match (param.kind.as_str(), param.dir) {
            ("STRING", _) => return self.text(param, index),
            ("ARGUMENT_LIST", _) => {
                self.pass(param, "nullptr");
                return Ok(());
            }
            ("REQUEST", _) => return self.request_array(param, index),
            (_, Direction::Out) => return self.output_array(param),
            _ => {}
        }
        let i = index.ok_or_else(|| format!("array {name} that is not given"))?;
        let convert = if is_handle(self.table, param) { "handles" } else { "numbers" };
        let constants: Vec<&String> = param.role.allows.iter().flatten().filter(|c| c.starts_with("MPI_")).collect();
        let constants: Vec<&String> = constants.into_iter().filter(|c| self.is_address(c)).collect();
        let none = format!("Numbers<{c_type}> ()");
        let given = format!("call.{convert}<{c_type}> ({i}, \"{name}\")");
        let is_text =
            if constants.is_empty() { String::new() } else { format!("call.arg ({i}).is_string () ? {none} : ") };
        self.declare(format!("auto {name} = {is_text}{given};"));
        let mut passed = format!("pointer ({name})");
        for constant in constants {
            passed = format!("call.is_constant ({i}, \"{constant}\") ? {constant} : {passed}");
        }
        self.pass(param, passed);
        self.length_of_array(param, i, !is_text.is_empty())
    }

    /// The parameter that holds the length of an array, if it is an input which follows from the array.
    fn length_param(&self, param: &Param) -> Option<&'a Param> {
        self.param(length_of(param).unwrap_or("*")).filter(|p| self.is_length(p) && p.dir == Direction::In)
    }

    fn request_array(&mut self, param: &'a Param, index: Option<usize>) -> Result<(), String> {
        let name = &param.name;
        let i = index.ok_or("requests that are not given")?;
        self.declare(format!("Requests {name} = call.requests ({i}, \"{name}\");"));
        self.pass(param, format!("{name}.now.data ()"));
        if let Some(length) = self.length_param(param) {
            self.declare(format!("const int {} = {name}.size ();", length.name));
            self.pass(length, length.name.clone());
        }
        if param.dir == Direction::Inout {
            self.requests_around(name, i);
        }
        Ok(())
    }

    fn output_array(&mut self, param: &'a Param) -> Result<(), String> {
        let name = &param.name;
        let c_type = self.c_type(param);
        let length = length_of(param).unwrap_or("*").to_string();
        let shown = self.param("outcount").map_or(length.clone(), |_| "outcount".to_string());
        let used = if length == "MPI_MAX" { "0".into() } else { length };
        let element = if param.kind.ends_with("STATUS") { "MPI_Status" } else { &c_type };
        self.declare(format!("std::vector<{element}> {name} (std::max<std::size_t> (1, {used}));"));
        let place = self.outputs.len() + 1;
        let value = if param.kind.ends_with("STATUS") {
            self.pass(param, format!("call.wants ({place}) ? {name}.data () : MPI_STATUSES_IGNORE"));
            format!("call.wants ({place}) ? call.statuses ({name}, {shown}) : Value ()")
        } else {
            self.pass(param, format!("{name}.data ()"));
            format!("call.row ({name}, {shown})")
        };
        self.outputs.push((name.clone(), value));
        Ok(())
    }

    /// Passes the length of an array that was given as argument `i`, or checks it; `is_optional`: a constant may stand
    /// for the array.
    fn length_of_array(&mut self, param: &'a Param, i: usize, is_optional: bool) -> Result<(), String> {
        let name = &param.name;
        let c_type = self.c_type(param);
        match &param.array {
            Some(Array::Matrix(lengths)) => {
                let [outer, inner] = &lengths[..] else { return Err(format!("array {name} has no rule")) };
                let outer = self.param(outer).ok_or("a matrix without a length")?;
                self.declare(format!("const int {} = static_cast<int> ({name}->size ()) / {inner};", outer.name));
                self.declare(format!(
                    "call.check_length ({i}, \"{name}\", static_cast<MPI_Count> ({name}->size ()), {} * {inner});",
                    outer.name
                ));
                // Octave has a triple per row, C the triples in sequence.
                self.declare(format!("call.transpose (*{name}, {}, {inner});", outer.name));
                self.pass(outer, outer.name.clone());
                self.pass(param, format!("reinterpret_cast<{c_type} (*)[{inner}]> (pointer ({name}))"));
            }
            _ => match self.length_param(param) {
                Some(length) if !self.passed.contains_key(&length.name) => {
                    let size_type = self.c_type(length);
                    self.declare(format!("const auto {} = static_cast<{size_type}> ({name}->size ());", length.name));
                    self.pass(length, length.name.clone());
                }
                _ => {
                    let needs = self.length_expression(length_of(param).unwrap_or("*"))?;
                    let check = format!("call.check_length ({i}, \"{name}\", {name}->size (), {needs});");
                    self.declare(if !is_optional { check } else { format!("if ({name})\n    {check}") });
                }
            },
        }
        Ok(())
    }

    pub(super) fn is_address(&self, constant: &str) -> bool {
        let found = self.table.constants.iter().find(|c| c.name == constant);
        found.is_some_and(|c| c.c_type.as_ref().is_some_and(|t| t.ends_with('*')))
    }

    /// A length of `roles.json` in C++.
    pub(super) fn length_expression(&self, length: &str) -> Result<String, String> {
        let inner = |prefix: &str| length.strip_prefix(prefix).and_then(|rest| rest.strip_suffix(')'));
        let comm = self.params().find(|p| p.kind == "COMMUNICATOR" && p.dir == Direction::In);
        let comm = comm.map_or("comm", |p| p.name.as_str());
        Ok(match length {
            "group_size" | "local_group_size" => format!("call.{length} ({comm})"),
            "indegree" | "outdegree" if self.param(length).is_none() => format!("call.{length} ({comm})"),
            "ndims" if self.param(length).is_none() => format!("call.cart_dims ({comm})"),
            _ if inner("sum(").is_some() => {
                let of = inner("sum(").unwrap_or_default();
                format!("std::accumulate ({of}->begin (), {of}->end (), MPI_Count (0))")
            }
            _ if inner("last(").is_some() => {
                let of = inner("last(").unwrap_or_default();
                format!("({of}->empty () ? 0 : {of}->back ())")
            }
            _ if self.param(length).is_some() => length.to_string(),
            _ => return Err(format!("the length {length} has no rule")),
        })
    }
}
