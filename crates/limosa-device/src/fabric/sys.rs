//! libfabric's interface, as much of it as is used: layouts of its structures, and its functions.
//!
//! Structures have the fields of libfabric's headers in their order, up to the last one that is used; fields that are
//! not used have plain types of the same size. The library allocates those that have grown with its versions
//! (`fi_dupinfo`). Calls go through tables of functions, as those of the headers do. A test compares sizes and offsets
//! with the headers where these are installed.
#![allow(missing_docs)]

use std::ffi::{c_char, c_int, c_void};

/// The version of the interface that is asked for.
pub const VERSION: u32 = 1 << 16 | 14;

pub const FI_MSG: u64 = 1 << 1;
pub const FI_TAGGED: u64 = 1 << 3;
pub const FI_RECV: u64 = 1 << 10;
pub const FI_SEND: u64 = 1 << 11;
pub const FI_CONTEXT: u64 = 1 << 59;
pub const FI_CONTEXT2: u64 = 1 << 52;
pub const FI_ORDER_SAS: u64 = 1 << 8;
pub const FI_MR_LOCAL: c_int = 1 << 2;
pub const FI_MR_VIRT_ADDR: c_int = 1 << 4;
pub const FI_MR_ALLOCATED: c_int = 1 << 5;
pub const FI_MR_PROV_KEY: c_int = 1 << 6;
pub const FI_SOCKADDR_IN: u32 = 2;
pub const FI_SOCKADDR_IN6: u32 = 3;
pub const FI_EP_RDM: c_int = 3;
pub const FI_THREAD_DOMAIN: c_int = 3;
pub const FI_RM_ENABLED: c_int = 2;
pub const FI_AV_TABLE: c_int = 2;
pub const FI_CQ_FORMAT_MSG: c_int = 2;
pub const FI_WAIT_SET: c_int = 2;
pub const FI_WAIT_FD: c_int = 3;
/// Commands of `control`.
pub const FI_GETWAIT: c_int = 5;
pub const FI_ENABLE: c_int = 6;

pub const FI_EAGAIN: isize = 11;
pub const FI_ETIMEDOUT: c_int = 110;
/// A message was longer than the room for it.
pub const FI_ETRUNC: c_int = 265;
/// An error is to be read.
pub const FI_EAVAIL: isize = 259;

#[repr(C)]
pub struct Ops {
    pub size: usize,
    pub close: extern "C" fn(*mut Fid) -> c_int,
    pub bind: extern "C" fn(*mut Fid, *mut Fid, u64) -> c_int,
    pub control: extern "C" fn(*mut Fid, c_int, *mut c_void) -> c_int,
}

#[repr(C)]
pub struct Fid {
    pub class: usize,
    pub context: *mut c_void,
    pub ops: *const Ops,
}

#[repr(C)]
pub struct Fabric {
    pub fid: Fid,
    pub ops: *const OpsFabric,
}

#[repr(C)]
pub struct OpsFabric {
    pub size: usize,
    pub domain: extern "C" fn(*mut Fabric, *mut Info, *mut *mut Domain, *mut c_void) -> c_int,
    pub passive_ep: usize,
    pub eq_open: usize,
    pub wait_open: extern "C" fn(*mut Fabric, *mut WaitAttr, *mut *mut Wait) -> c_int,
    pub trywait: extern "C" fn(*mut Fabric, *mut *mut Fid, c_int) -> c_int,
}

#[repr(C)]
#[derive(Default)]
pub struct WaitAttr {
    pub wait_obj: c_int,
    pub flags: u64,
}

#[repr(C)]
pub struct Wait {
    pub fid: Fid,
    pub ops: *const OpsWait,
}

#[repr(C)]
pub struct OpsWait {
    pub size: usize,
    pub wait: extern "C" fn(*mut Wait, c_int) -> c_int,
}

#[repr(C)]
pub struct Domain {
    pub fid: Fid,
    pub ops: *const OpsDomain,
    pub mr: *const OpsMr,
}

#[repr(C)]
pub struct OpsDomain {
    pub size: usize,
    pub av_open: extern "C" fn(*mut Domain, *mut AvAttr, *mut *mut Av, *mut c_void) -> c_int,
    pub cq_open: extern "C" fn(*mut Domain, *mut CqAttr, *mut *mut Cq, *mut c_void) -> c_int,
    pub endpoint: extern "C" fn(*mut Domain, *mut Info, *mut *mut Ep, *mut c_void) -> c_int,
}

#[repr(C)]
pub struct OpsMr {
    pub size: usize,
    #[allow(clippy::type_complexity)]
    pub reg: extern "C" fn(*mut Fid, *const c_void, usize, u64, u64, u64, u64, *mut *mut Mr, *mut c_void) -> c_int,
}

#[repr(C)]
pub struct Mr {
    pub fid: Fid,
    pub desc: *mut c_void,
    pub key: u64,
}

#[repr(C)]
#[derive(Default)]
pub struct AvAttr {
    pub kind: c_int,
    pub rx_ctx_bits: c_int,
    pub count: usize,
    pub ep_per_node: usize,
    pub name: usize,
    pub map_addr: usize,
    pub flags: u64,
}

#[repr(C)]
pub struct Av {
    pub fid: Fid,
    pub ops: *const OpsAv,
}

#[repr(C)]
pub struct OpsAv {
    pub size: usize,
    pub insert: extern "C" fn(*mut Av, *const c_void, usize, *mut u64, u64, *mut c_void) -> c_int,
    pub insertsvc: usize,
    pub insertsym: usize,
    pub remove: extern "C" fn(*mut Av, *mut u64, usize, u64) -> c_int,
}

#[repr(C)]
pub struct CqAttr {
    pub size: usize,
    pub flags: u64,
    pub format: c_int,
    pub wait_obj: c_int,
    pub signaling_vector: c_int,
    pub wait_cond: c_int,
    pub wait_set: *mut Wait,
}

#[repr(C)]
pub struct Cq {
    pub fid: Fid,
    pub ops: *const OpsCq,
}

#[repr(C)]
pub struct OpsCq {
    pub size: usize,
    pub read: extern "C" fn(*mut Cq, *mut c_void, usize) -> isize,
    pub readfrom: usize,
    pub readerr: extern "C" fn(*mut Cq, *mut CqErrEntry, u64) -> isize,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct CqMsgEntry {
    pub context: usize,
    pub flags: u64,
    pub len: usize,
}

#[repr(C)]
#[derive(Default)]
pub struct CqErrEntry {
    pub context: usize,
    pub flags: u64,
    pub len: usize,
    pub buf: usize,
    pub data: u64,
    pub tag: u64,
    pub olen: usize,
    pub err: c_int,
    pub prov_errno: c_int,
    pub err_data: usize,
    pub err_data_size: usize,
    /// Room for what later versions add.
    pub later: [u64; 8],
}

#[repr(C)]
pub struct Ep {
    pub fid: Fid,
    pub ops: *const OpsEp,
    pub cm: *const OpsCm,
    pub msg: *const OpsMsg,
    pub rma: usize,
    pub tagged: *const OpsTagged,
}

#[repr(C)]
pub struct OpsEp {
    pub size: usize,
    pub cancel: extern "C" fn(*mut Fid, *mut c_void) -> isize,
}

#[repr(C)]
pub struct OpsCm {
    pub size: usize,
    pub setname: usize,
    pub getname: extern "C" fn(*mut Fid, *mut c_void, *mut usize) -> c_int,
}

#[repr(C)]
pub struct OpsMsg {
    pub size: usize,
    pub recv: extern "C" fn(*mut Ep, *mut c_void, usize, *mut c_void, u64, *mut c_void) -> isize,
    pub recvv: usize,
    pub recvmsg: usize,
    pub send: extern "C" fn(*mut Ep, *const c_void, usize, *mut c_void, u64, *mut c_void) -> isize,
    pub sendv: extern "C" fn(*mut Ep, *const libc::iovec, *mut *mut c_void, usize, u64, *mut c_void) -> isize,
}

#[repr(C)]
pub struct OpsTagged {
    pub size: usize,
    pub recv: extern "C" fn(*mut Ep, *mut c_void, usize, *mut c_void, u64, u64, u64, *mut c_void) -> isize,
    pub recvv: usize,
    pub recvmsg: usize,
    pub send: extern "C" fn(*mut Ep, *const c_void, usize, *mut c_void, u64, u64, *mut c_void) -> isize,
}

#[repr(C)]
pub struct TxAttr {
    pub caps: u64,
    pub mode: u64,
    pub op_flags: u64,
    pub msg_order: u64,
    pub comp_order: u64,
    pub inject_size: usize,
    pub size: usize,
    pub iov_limit: usize,
}

#[repr(C)]
pub struct RxAttr {
    pub caps: u64,
    pub mode: u64,
    pub op_flags: u64,
    pub msg_order: u64,
    pub comp_order: u64,
    pub total_buffered_recv: usize,
    pub size: usize,
}

#[repr(C)]
pub struct EpAttr {
    pub kind: c_int,
    pub protocol: u32,
    pub protocol_version: u32,
    pub max_msg_size: usize,
    pub msg_prefix_size: usize,
    pub max_order_raw_size: usize,
    pub max_order_war_size: usize,
    pub max_order_waw_size: usize,
    pub mem_tag_format: u64,
}

#[repr(C)]
pub struct DomainAttr {
    pub domain: *mut Domain,
    pub name: *mut c_char,
    pub threading: c_int,
    pub control_progress: c_int,
    pub data_progress: c_int,
    pub resource_mgmt: c_int,
    pub av_type: c_int,
    pub mr_mode: c_int,
}

#[repr(C)]
pub struct FabricAttr {
    pub fabric: *mut Fabric,
    pub name: *mut c_char,
    pub prov_name: *mut c_char,
    pub prov_version: u32,
    pub api_version: u32,
}

#[repr(C)]
pub struct Info {
    pub next: *mut Info,
    pub caps: u64,
    pub mode: u64,
    pub addr_format: u32,
    pub src_addrlen: usize,
    pub dest_addrlen: usize,
    pub src_addr: *mut c_void,
    pub dest_addr: *mut c_void,
    pub handle: *mut Fid,
    pub tx_attr: *mut TxAttr,
    pub rx_attr: *mut RxAttr,
    pub ep_attr: *mut EpAttr,
    pub domain_attr: *mut DomainAttr,
    pub fabric_attr: *mut FabricAttr,
}

pub type FiVersion = unsafe extern "C" fn() -> u32;
pub type FiGetinfo = unsafe extern "C" fn(u32, *const c_char, *const c_char, u64, *const Info, *mut *mut Info) -> c_int;
pub type FiFreeinfo = unsafe extern "C" fn(*mut Info);
pub type FiDupinfo = unsafe extern "C" fn(*const Info) -> *mut Info;
pub type FiFabric = unsafe extern "C" fn(*mut FabricAttr, *mut *mut Fabric, *mut c_void) -> c_int;
pub type FiStrerror = unsafe extern "C" fn(c_int) -> *const c_char;

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;
    use std::process::Command;

    /// Offsets of all fields that are used: here, and for C.
    macro_rules! offsets {
        ($($here:ident $there:literal { $($field:ident $name:literal),* })*) => {
            (
                vec![$($(offset_of!($here, $field)),*),*],
                [$($(concat!("offsetof(struct ", $there, ", ", $name, ")")),*),*].join(", "),
            )
        };
    }

    /// Offsets here, and how C says them.
    fn offsets() -> (Vec<usize>, String) {
        offsets! {
            Ops "fi_ops" { close "close", bind "bind", control "control" }
            Fid "fid" { class "fclass", context "context", ops "ops" }
            Fabric "fid_fabric" { fid "fid", ops "ops" }
            OpsFabric "fi_ops_fabric" { domain "domain", wait_open "wait_open", trywait "trywait" }
            WaitAttr "fi_wait_attr" { wait_obj "wait_obj", flags "flags" }
            Wait "fid_wait" { fid "fid", ops "ops" }
            OpsWait "fi_ops_wait" { wait "wait" }
            Domain "fid_domain" { fid "fid", ops "ops", mr "mr" }
            OpsDomain "fi_ops_domain" { av_open "av_open", cq_open "cq_open", endpoint "endpoint" }
            OpsMr "fi_ops_mr" { reg "reg" }
            Mr "fid_mr" { desc "mem_desc", key "key" }
            AvAttr "fi_av_attr" { kind "type", count "count", flags "flags" }
            Av "fid_av" { ops "ops" }
            OpsAv "fi_ops_av" { insert "insert", remove "remove" }
            CqAttr "fi_cq_attr" {
                size "size", flags "flags", format "format", wait_obj "wait_obj", wait_cond "wait_cond",
                wait_set "wait_set"
            }
            Cq "fid_cq" { ops "ops" }
            OpsCq "fi_ops_cq" { read "read", readerr "readerr" }
            CqMsgEntry "fi_cq_msg_entry" { context "op_context", flags "flags", len "len" }
            CqErrEntry "fi_cq_err_entry" {
                context "op_context", len "len", err "err", prov_errno "prov_errno", err_data_size "err_data_size"
            }
            Ep "fid_ep" { ops "ops", cm "cm", msg "msg", tagged "tagged" }
            OpsEp "fi_ops_ep" { cancel "cancel" }
            OpsCm "fi_ops_cm" { getname "getname" }
            OpsMsg "fi_ops_msg" { recv "recv", send "send", sendv "sendv" }
            OpsTagged "fi_ops_tagged" { recv "recv", send "send" }
            TxAttr "fi_tx_attr" { msg_order "msg_order", size "size", iov_limit "iov_limit" }
            RxAttr "fi_rx_attr" { msg_order "msg_order", size "size" }
            EpAttr "fi_ep_attr" { kind "type", max_msg_size "max_msg_size", mem_tag_format "mem_tag_format" }
            DomainAttr "fi_domain_attr" {
                name "name", threading "threading", resource_mgmt "resource_mgmt", mr_mode "mr_mode"
            }
            FabricAttr "fi_fabric_attr" { name "name", prov_name "prov_name" }
            Info "fi_info" {
                next "next", caps "caps", mode "mode", addr_format "addr_format", tx_attr "tx_attr",
                rx_attr "rx_attr", ep_attr "ep_attr", domain_attr "domain_attr", fabric_attr "fabric_attr"
            }
        }
    }

    fn constants() -> Vec<usize> {
        let mut here = Vec::new();
        here.extend(
            [
                FI_EP_RDM,
                FI_THREAD_DOMAIN,
                FI_RM_ENABLED,
                FI_AV_TABLE,
                FI_CQ_FORMAT_MSG,
                FI_WAIT_SET,
                FI_WAIT_FD,
                FI_ETIMEDOUT,
                FI_ETRUNC,
                FI_GETWAIT,
                FI_ENABLE,
                FI_MR_LOCAL,
                FI_MR_VIRT_ADDR,
                FI_MR_ALLOCATED,
                FI_MR_PROV_KEY,
            ]
            .map(|each| each as usize),
        );
        let bits = [FI_MSG, FI_TAGGED, FI_SEND, FI_RECV, FI_CONTEXT, FI_CONTEXT2, FI_ORDER_SAS];
        here.extend(bits.map(|each| each as usize));
        here.extend([FI_SOCKADDR_IN, FI_SOCKADDR_IN6].map(|each| each as usize));
        here.extend([FI_EAGAIN, FI_EAVAIL].map(|each| each as usize));
        here
    }

    /// The same as the headers have them.
    fn of_headers(there: &str) -> Vec<usize> {
        let program = format!(
            "#include <stddef.h>\n#include <stdio.h>\n#include <rdma/fabric.h>\n#include <rdma/fi_cm.h>\n\
             #include <rdma/fi_domain.h>\n#include <rdma/fi_endpoint.h>\n#include <rdma/fi_eq.h>\n\
             #include <rdma/fi_errno.h>\n#include <rdma/fi_tagged.h>\n\
             int main(void) {{ size_t all[] = {{ {there}, FI_EP_RDM, FI_THREAD_DOMAIN, FI_RM_ENABLED, FI_AV_TABLE, \
             FI_CQ_FORMAT_MSG, FI_WAIT_SET, FI_WAIT_FD, FI_ETIMEDOUT, FI_ETRUNC, FI_GETWAIT, FI_ENABLE, FI_MR_LOCAL, \
             FI_MR_VIRT_ADDR, FI_MR_ALLOCATED, FI_MR_PROV_KEY, FI_MSG, FI_TAGGED, FI_SEND, FI_RECV, FI_CONTEXT, \
             FI_CONTEXT2, FI_ORDER_SAS, FI_SOCKADDR_IN, FI_SOCKADDR_IN6, FI_EAGAIN, FI_EAVAIL }}; \
             for (size_t i = 0; i < sizeof all / sizeof *all; i++) printf(\"%zu \", all[i]); }}"
        );
        let folder = tempfile::tempdir().expect("a folder");
        let (source, binary) = (folder.path().join("layout.c"), folder.path().join("layout"));
        std::fs::write(&source, program).expect("a file");
        let compiled = Command::new("cc").arg(&source).arg("-o").arg(&binary).status().expect("a C compiler");
        assert!(compiled.success());
        let output = Command::new(&binary).output().expect("the program").stdout;
        let output = String::from_utf8(output).expect("text");
        output.split_whitespace().map(|number| number.parse().expect("a number")).collect()
    }

    #[test]
    fn structures_and_constants_are_those_of_the_headers() {
        if !std::path::Path::new("/usr/include/rdma/fabric.h").exists() {
            return eprintln!("not run: the headers of libfabric are not here (`apt install libfabric-dev`)");
        }
        let (mut here, there) = offsets();
        here.extend(constants());
        assert_eq!(here, of_headers(&there));
    }
}
