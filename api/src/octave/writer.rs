//! One function that is being written: what its parts share, in which order they are written, and its end.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::{Exceptions, is_buffer, length_of};
use crate::roles::Form;
use crate::{Arg, Direction, Function, Param, Table};

/// A function that is being written.
pub(super) struct Writer<'a> {
    pub(super) table: &'a Table,
    pub(super) exceptions: &'a Exceptions,
    pub(super) function: &'a Function,
    pub(super) args: Vec<Arg<'a>>,
    /// Names of the arguments that Octave code passes, in order.
    pub(super) inputs: Vec<String>,
    /// Octave's names of the outputs after info, with the C++ expressions of their values.
    pub(super) outputs: Vec<(String, String)>,
    /// Statements before the call.
    pub(super) before: Vec<String>,
    /// Statements after the call.
    pub(super) after: Vec<String>,
    /// Arguments of the call, by parameter.
    pub(super) passed: BTreeMap<String, String>,
    /// The last argument stands for all from there on.
    pub(super) open_ended: bool,
}

impl<'a> Writer<'a> {
    pub(super) fn new(table: &'a Table, exceptions: &'a Exceptions, function: &'a Function) -> Writer<'a> {
        Writer {
            table,
            exceptions,
            function,
            args: table.args(function, function.large),
            inputs: Vec::new(),
            outputs: Vec::new(),
            before: Vec::new(),
            after: Vec::new(),
            passed: BTreeMap::new(),
            open_ended: false,
        }
    }

    pub(super) fn param(&self, name: &str) -> Option<&'a Param> {
        self.function.param(name)
    }

    pub(super) fn params(&self) -> impl Iterator<Item = &'a Param> + use<'a> {
        let large = self.function.large;
        self.function.params.iter().filter(move |p| large || !p.large_only)
    }

    pub(super) fn buffers(&self) -> Vec<&'a Param> {
        self.params().filter(|p| is_buffer(p)).collect()
    }

    pub(super) fn c_type(&self, param: &Param) -> String {
        self.args.iter().find(|a| a.param.name == param.name).expect("a parameter of the function").c_type.clone()
    }

    /// True if another argument says what this parameter is.
    pub(super) fn follows(&self, param: &Param) -> bool {
        let explicit = self.exceptions.explicit_counts.get(self.function.operation());
        if explicit == Some(&param.name) {
            return true; // written after the buffers
        }
        let describes = self.params().any(|p| {
            let scalar_count = p.role.count.as_deref() == Some(&param.name) && param.array.is_none();
            scalar_count || p.role.datatype.as_deref() == Some(&param.name)
        });
        let target = ["target_count", "target_datatype"].contains(&param.name.as_str());
        describes || target || self.is_length(param)
    }

    pub(super) fn is_length(&self, param: &Param) -> bool {
        param.dir == Direction::In && self.params().any(|p| p.array.is_some() && length_of(p) == Some(&param.name))
    }

    /// True if the operation goes on after the call.
    pub(super) fn goes_on(&self) -> bool {
        self.params().any(|p| p.kind == "REQUEST" && p.dir == Direction::Out)
    }

    pub(super) fn persistent(&self) -> bool {
        self.function.form() == Form::Persistent || self.function.name.ends_with("_init")
    }

    /// `here && ` for arguments that are significant at the root only.
    pub(super) fn significant(&self, param: &Param) -> bool {
        param.role.significant.as_deref() == Some("root")
    }

    pub(super) fn input(&mut self, name: &str) -> usize {
        self.inputs.push(name.to_string());
        self.inputs.len() - 1
    }

    pub(super) fn declare(&mut self, line: String) {
        self.before.push(line);
    }

    pub(super) fn pass(&mut self, param: &Param, expression: impl Into<String>) {
        self.passed.insert(param.name.clone(), expression.into());
    }

    pub(super) fn write(mut self) -> Result<String, String> {
        let indices = self.number_inputs();
        let order = |this: &Writer<'a>, wanted: fn(&Writer<'a>, &Param) -> bool| -> Vec<&'a Param> {
            this.params().filter(|p| wanted(this, p)).collect()
        };
        // Numbers and handles first: what buffers need depends on them.
        for param in order(&self, |_, p| p.array.is_none() && !is_buffer(p)) {
            self.scalar(param, indices.get(&param.name).copied())?;
        }
        if self.buffers().iter().any(|p| self.significant(p)) {
            self.declare("const bool here = call.is_root (root, comm);".into());
        }
        let counts = |this: &Writer<'a>, p: &Param| {
            this.params()
                .any(|b| b.role.count.as_deref() == Some(&p.name) || b.role.displacements.as_deref() == Some(&p.name))
        };
        for param in self.params().filter(|p| p.array.is_some() && !is_buffer(p)).collect::<Vec<_>>() {
            if !counts(&self, param) && !self.follows(param) {
                self.array(param, indices.get(&param.name).copied())?;
            }
        }
        for param in self.buffers() {
            self.buffer(param, indices.get(&param.name).copied())?;
        }
        if !self.buffers().is_empty() {
            self.lengths_of_buffers(&indices)?;
        }
        self.end()
    }

    /// Gives the inputs their places: MPI's order, an explicit count after the last buffer.
    pub(super) fn number_inputs(&mut self) -> BTreeMap<String, usize> {
        let mut indices = BTreeMap::new();
        let explicit = self.exceptions.explicit_counts.get(self.function.operation()).cloned();
        let last_buffer = self.buffers().last().map(|p| p.name.clone());
        for param in self.params().collect::<Vec<_>>() {
            let dropped = ["EXTRA_STATE", "VARARGS", "STRING_LENGTH", "INFO_VALUE_LENGTH", "ARGUMENT_COUNT"]
                .contains(&param.kind.as_str())
                || param.kind == "ARGUMENT_LIST";
            let given = match param.dir {
                Direction::Out => is_buffer(param),
                _ => !dropped,
            };
            if given && !self.follows(param) {
                indices.insert(param.name.clone(), self.input(&param.name));
                self.open_ended |= param.kind == "REQUEST" && param.array.is_some();
            }
            if Some(&param.name) == last_buffer.as_ref()
                && let Some(name) = &explicit
            {
                indices.insert(name.clone(), self.input(name));
            }
        }
        indices
    }

    /// Keeps what the operation goes on using, and forgets what it has ended.
    pub(super) fn holding(&mut self) {
        let name = self.function.name.as_str();
        let buffers: Vec<String> = self.buffers().iter().map(|p| p.name.clone()).collect();
        let list = buffers.join(", ");
        let succeeded = |statement: String| format!("if (code == MPI_SUCCESS)\n    {statement}");
        if self.goes_on() {
            let arrays: Vec<String> = self
                .params()
                .filter(|p| !is_buffer(p) && !["STRING", "REQUEST"].contains(&p.kind.as_str()))
                .filter(|p| (p.array.is_some() && p.dir == Direction::In) || p.dir == Direction::Out)
                .map(|p| p.name.clone())
                .collect();
            if !buffers.is_empty() || !arrays.is_empty() {
                self.after.push(succeeded(format!(
                    "call.hold (request, {}, {{{list}}}, {{{}}});",
                    self.persistent(),
                    arrays.join(", ")
                )));
            }
            return;
        }
        if self.param("target_rank").is_some() && !buffers.is_empty() {
            self.after.push(succeeded(format!("call.hold_for (win, target_rank, {{{list}}});")));
        } else if ["MPI_Win_create", "MPI_Win_attach"].contains(&name) {
            self.after.push(succeeded(format!("call.hold_for (win, -1, {{{list}}});")));
        } else if name.ends_with("_begin") {
            self.after.push(succeeded(format!("call.hold_for (fh, 0, {{{list}}});")));
        } else if name.ends_with("_end") {
            self.before.push("const std::vector<Buffer> held = call.release (fh, 0);".into());
            self.before.push("if (! held.empty ())".into());
            self.before.push(format!("  {list}.data = held.front ().data;"));
            self.after.push("call.give (held);".into());
        } else if ["MPI_Win_unlock", "MPI_Win_flush", "MPI_Win_flush_local"].contains(&name) {
            self.after.push("call.release_epoch (win, rank);".into());
        } else if ["fence", "complete", "unlock_all", "flush_all", "flush_local_all"]
            .iter()
            .any(|end| name == format!("MPI_Win_{end}"))
        {
            self.after.push("call.release_epoch (win, -1);".into());
        } else if name == "MPI_Win_free" {
            self.before.push("const MPI_Win freed = win;".into());
            self.after.push(succeeded("call.give (call.release (freed));".into()));
        }
    }

    pub(super) fn end(mut self) -> Result<String, String> {
        self.holding();
        let f = self.function;
        let twin = if f.large { "_c" } else { "" };
        let mut passed = Vec::new();
        for arg in &self.args {
            let expression = self.passed.get(&arg.param.name);
            passed.push(expression.ok_or_else(|| format!("nothing gives the parameter {}", arg.param.name))?.clone());
        }
        let least = self.inputs.len();
        let most = if self.open_ended { "-1".into() } else { least.to_string() };
        let call = format!("{}{twin} ({})", f.name, passed.join(", "));
        let symbol = format!("{}{twin}", f.name);
        let dots = if self.open_ended { ", ..." } else { "" };
        let value = f.returns != "ERROR_CODE";
        let outputs: Vec<&str> = self.outputs.iter().map(|(name, _)| name.as_str()).collect();
        let left = if value {
            "value".to_string()
        } else if outputs.is_empty() {
            "info".to_string()
        } else {
            format!("[info, {}]", outputs.join(", "))
        };
        let usage = format!("{left} = {} ({}{dots})", f.name, self.inputs.join(", "));
        let mut out = format!("MPITB ({}, {least}, {most}, \"{usage}\")\n{{\n", f.name);
        writeln!(out, "  NEEDS ({symbol});").unwrap();
        let unused = self.inputs.is_empty() && self.before.is_empty() && value;
        if unused {
            writeln!(out, "  (void) call;").unwrap();
        }
        for line in &self.before {
            writeln!(out, "  {line}").unwrap();
        }
        if value {
            writeln!(out, "  return call.value ({call});\n}}\n").unwrap();
            return Ok(out);
        }
        writeln!(out, "  const int code = {call};").unwrap();
        for line in &self.after {
            writeln!(out, "  {line}").unwrap();
        }
        let values: String = self.outputs.iter().map(|(_, value)| format!(", {value}")).collect();
        writeln!(out, "  return call.results (code{values});\n}}\n").unwrap();
        Ok(out)
    }
}
