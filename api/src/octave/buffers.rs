//! Buffers, and the counts, datatypes and displacements that follow from them.

use std::collections::BTreeMap;

use super::length_of;
use super::writer::Writer;
use crate::{Direction, Param};

impl<'a> Writer<'a> {
    pub(super) fn buffer(&mut self, param: &'a Param, index: Option<usize>) -> Result<(), String> {
        let name = &param.name;
        let i = index.ok_or_else(|| format!("buffer {name} that is not given"))?;
        // Some that MPI writes, or has others write, are `in` without `const`.
        let read = param.constant || self.function.name.ends_with("_end");
        let verb = if read { "read" } else { "write" };
        let in_place = if param.role.allows("MPI_IN_PLACE") { ", true" } else { "" };
        let get = format!("call.{verb} ({i}, \"{name}\"{in_place})");
        self.declare(if self.significant(param) {
            format!("Buffer {name} = here ? {get} : Buffer ();")
        } else {
            format!("Buffer {name} = {get};")
        });
        if read && self.goes_on() {
            self.declare(format!("call.keep ({name}, {});", self.persistent()));
        }
        self.pass(param, format!("{name}.data"));
        Ok(())
    }

    /// Counts, datatypes and displacements, which follow from the buffers and from what the caller gave.
    pub(super) fn lengths_of_buffers(&mut self, indices: &BTreeMap<String, usize>) -> Result<(), String> {
        let buffers = self.buffers();
        let names: Vec<String> = buffers.iter().filter(|p| p.role.datatype.is_some()).map(|p| p.name.clone()).collect();
        if let Some(op) = self.params().find(|p| p.kind == "OPERATION")
            && self.param("win").is_none()
        {
            let list: Vec<String> = names.iter().map(|n| format!("&{n}")).collect();
            let blocking = !self.goes_on();
            self.declare(format!("call.check_operation ({}, {blocking}, {{{}}});", op.name, list.join(", ")));
        }
        if let [a, b] = &names[..] {
            let both: Vec<String> = buffers
                .iter()
                .filter(|p| p.role.datatype.is_some() && self.significant(p))
                .map(|_| "here".into())
                .collect();
            let places =
                buffers.iter().filter(|p| p.role.allows("MPI_IN_PLACE")).map(|p| format!("! {}.in_place", p.name));
            let conditions: Vec<String> = both.into_iter().chain(places).collect();
            // A message between two different processes may change its class; a collective operation cannot.
            if self.function.collective || self.function.operation() == "MPI_Reduce_local" {
                let check = format!("call.check_same_class ({a}, {b});");
                self.declare(if conditions.is_empty() {
                    check
                } else {
                    format!("if ({})\n    {check}", conditions.join(" && "))
                });
            }
        }
        for param in &buffers {
            self.describe(param, &buffers, indices)?;
        }
        // The part of the target is like that of the origin.
        if self.param("target_count").is_some() {
            let like = if self.param("result_addr").is_some() { "result_addr" } else { "origin_addr" };
            for (name, field) in [("target_count", "count"), ("target_datatype", "type")] {
                let param = self.param(name).ok_or("a target without a datatype")?;
                self.pass(param, format!("{like}.{field}"));
            }
        }
        Ok(())
    }

    pub(super) fn describe(
        &mut self,
        param: &'a Param,
        buffers: &[&'a Param],
        indices: &BTreeMap<String, usize>,
    ) -> Result<(), String> {
        let name = &param.name;
        let blocks = param.role.blocks.as_deref().map(|b| self.length_expression(b)).transpose()?;
        let count = param.role.count.as_deref().and_then(|c| self.param(c));
        let types = param.role.datatype.as_deref().and_then(|t| self.param(t));
        if let Some(types) = types.filter(|p| !self.passed.contains_key(&p.name)) {
            self.datatype(param, types, buffers, blocks.as_deref())?;
        }
        let Some(count) = count else {
            if types.is_some() {
                self.declare(format!("call.check_one ({name});"));
            }
            return Ok(());
        };
        if types.is_none() {
            self.pass(count, format!("{name}.bytes ()"));
            return Ok(());
        }
        if count.array.is_some() {
            return self.vector(param, count, types, blocks, indices);
        }
        if let Some(i) = indices.get(&count.name) {
            // The caller says how much goes to each process.
            debug_assert!(*i > 0, "an explicit count follows buffers");
            self.pass(count, format!("{} * {name}.unit", count.name));
            let n = blocks.ok_or("an explicit count without blocks")?;
            self.declare(format!(
                "call.check_fits ({name}, {name}.in_place ? 0 : {} * {name}.unit * {n});",
                count.name
            ));
            return Ok(());
        }
        let explicit = self.exceptions.explicit_counts.get(self.function.operation()).cloned();
        if let (Some(explicit), Some(n)) = (explicit, &blocks) {
            self.pass(count, format!("{explicit} * {name}.unit"));
            self.declare(format!("call.check_fits ({name}, {explicit} * {name}.unit * {n});"));
            return Ok(());
        }
        if count.name == "partitions" {
            return Err("a count of partitions".into());
        }
        self.count(param, count, buffers, blocks.as_deref());
        Ok(())
    }

    /// The datatype of a buffer's elements, or the same one for each block.
    fn datatype(
        &mut self,
        param: &'a Param,
        types: &'a Param,
        buffers: &[&'a Param],
        blocks: Option<&str>,
    ) -> Result<(), String> {
        let name = &param.name;
        let source = if self.in_place_of(param) {
            let other = self.partner(param, buffers).ok_or("a buffer in place without a partner")?;
            format!("{name}.in_place ? {}.type : {name}.type", other.name)
        } else {
            format!("{name}.type")
        };
        if types.array.is_some() {
            let n = blocks.ok_or("an array of datatypes without a number of blocks")?;
            self.declare(format!(
                "auto {t} = std::make_shared<std::vector<MPI_Datatype>> ({n}, {source});",
                t = types.name
            ));
            self.pass(types, format!("pointer ({})", types.name));
        } else {
            self.pass(types, source);
        }
        Ok(())
    }

    /// One count for a buffer, or for each of its blocks, that follows from it and from its partner.
    fn count(&mut self, param: &'a Param, count: &'a Param, buffers: &[&'a Param], blocks: Option<&str>) {
        let name = &param.name;
        let here = self.significant(param);
        let partner = self.partner(param, buffers);
        match (blocks, partner) {
            // One block for each process, as long as what one process gives.
            (Some(n), Some(other)) if other.role.blocks.is_none() => {
                let variable = if self.passed.contains_key(&count.name) { None } else { Some(&count.name) };
                let share = format!("call.share ({name}, {n})");
                let value = if self.in_place_of(other) {
                    format!("{}.in_place ? {share} : {}.count", other.name, other.name)
                } else {
                    format!("{}.count", other.name)
                };
                let value = if here { format!("! here ? 0 : {value}") } else { value };
                let local = format!("{name}_count");
                self.declare(format!("const MPI_Count {local} = {value};"));
                let fits = format!("call.check_fits ({name}, {local} * {n});");
                let place = if self.in_place_of(param) { format!("! {name}.in_place") } else { String::new() };
                let conditions: Vec<&str> =
                    [if here { "here" } else { "" }, &place].into_iter().filter(|c| !c.is_empty()).collect();
                self.declare(if conditions.is_empty() {
                    fits
                } else {
                    format!("if ({})\n    {fits}", conditions.join(" && "))
                });
                if variable.is_some() {
                    self.pass(count, local);
                }
            }
            (Some(n), _) => {
                let local = format!("{name}_count");
                self.declare(format!("const MPI_Count {local} = call.share ({name}, {n});"));
                self.pass(count, local);
            }
            // Two buffers with one count: as much as is sent.
            (None, Some(other)) if other.role.count == param.role.count && other.role.blocks.is_none() => {
                if param.dir == Direction::In {
                    let value = if self.in_place_of(param) {
                        format!("{name}.in_place ? {}.count : {name}.count", other.name)
                    } else {
                        format!("{name}.count")
                    };
                    self.pass(count, value);
                } else {
                    let fits = format!("call.check_fits ({name}, {}.count);", other.name);
                    self.declare(if here { format!("if (here)\n    {fits}") } else { fits });
                }
            }
            // A block of its own: as long as the partner's blocks if it is in place, which is not read then.
            _ => {
                if !self.passed.contains_key(&count.name) {
                    self.pass(count, format!("{name}.count"));
                }
            }
        }
    }

    /// Counts for each block, and displacements, that the caller gives in elements.
    pub(super) fn vector(
        &mut self,
        param: &'a Param,
        count: &'a Param,
        types: Option<&'a Param>,
        blocks: Option<String>,
        indices: &BTreeMap<String, usize>,
    ) -> Result<(), String> {
        let name = &param.name;
        let here = self.significant(param);
        let n = match blocks {
            Some(blocks) => blocks,
            None => self.length_expression(length_of(count).ok_or("counts without a length")?)?,
        };
        let place = if self.in_place_of(param) { format!("! {name}.in_place") } else { String::new() };
        let conditions: Vec<&str> =
            [if here { "here" } else { "" }, &place].into_iter().filter(|c| !c.is_empty()).collect();
        let conditions = conditions.join(" && ");
        let when = |value: String, none: String| {
            if conditions.is_empty() { value } else { format!("{conditions} ? {value} : {none}") }
        };
        let displacements = param.role.displacements.as_deref().and_then(|d| self.param(d));
        if !self.passed.contains_key(&count.name) {
            let i = indices.get(&count.name).ok_or("counts that are not given")?;
            // Of reductions the counts describe the result, of which there always is one.
            let (when, unit): (&dyn Fn(String, String) -> String, _) = if displacements.is_some() {
                (&when, format!("{name}.unit"))
            } else {
                (&|value, _| value, "recvbuf.unit".to_string())
            };
            let get = format!("call.counts<MPI_Count> ({i}, \"{}\", {n}, {unit})", count.name);
            self.declare(format!("auto {} = {};", count.name, when(get, "Numbers<MPI_Count> ()".into())));
            self.pass(count, format!("pointer ({})", count.name));
        }
        let Some(displacements) = displacements else {
            let total = format!("std::accumulate ({c}->begin (), {c}->end (), MPI_Count (0))", c = count.name);
            let needs =
                if param.role.blocks.is_some() { total } else { format!("(*{})[call.local_rank (comm)]", count.name) };
            let fits = format!("call.check_fits ({name}, {needs});");
            self.declare(if place.is_empty() { fits } else { format!("if ({place})\n    {fits}") });
            return Ok(());
        };
        let i = indices.get(&displacements.name).ok_or("displacements that are not given")?;
        let d_type = self.c_type(displacements);
        let bytes = types.is_some_and(|t| t.array.is_some());
        let factor = if bytes { format!("{name}.unit * {name}.size") } else { format!("{name}.unit") };
        let get = format!("call.counts<{d_type}> ({i}, \"{d}\", {n}, {factor})", d = displacements.name);
        self.declare(format!("auto {} = {};", displacements.name, when(get, format!("Numbers<{d_type}> ()"))));
        self.pass(displacements, format!("pointer ({})", displacements.name));
        let size = if bytes { format!("{name}.size") } else { "1".into() };
        let check = format!("call.check_blocks ({name}, {}, {}, {size});", count.name, displacements.name);
        self.declare(if conditions.is_empty() { check } else { format!("if ({conditions})\n    {check}") });
        Ok(())
    }

    pub(super) fn in_place_of(&self, param: &Param) -> bool {
        param.role.allows("MPI_IN_PLACE")
    }

    pub(super) fn partner(&self, param: &Param, buffers: &[&'a Param]) -> Option<&'a Param> {
        let others: Vec<_> = buffers.iter().filter(|b| b.name != param.name && b.role.datatype.is_some()).collect();
        // Buffers of a pair of messages have nothing to do with each other.
        let pair = self.function.collective
            || param.role.count.is_some() && others.len() == 1 && others[0].role.count == param.role.count;
        if others.len() == 1 && pair { Some(others[0]) } else { None }
    }
}
