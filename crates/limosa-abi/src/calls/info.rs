//! Info objects (MPI-5 chapter 10).

use std::ffi::{CStr, c_char, c_int};
use std::sync::Arc;

use limosa_mpi::consts;
use limosa_mpi::info::{Info, MAX_KEY_BYTES};
use limosa_mpi::{Error, Result};

use crate::args;
use crate::cx::Cx;
use crate::handles::Handle;
use crate::kinds;

pub(crate) fn mpi_info_create(cx: &Cx, info: &mut Handle) -> Result<()> {
    *info = cx.register(Info::new())?;
    Ok(())
}

pub(crate) fn mpi_info_create_env(cx: &Cx, argc: c_int, argv: *mut *mut c_char, info: &mut Handle) -> Result<()> {
    let count = if argv.is_null() { 0 } else { argc.max(0) as usize };
    let words: &[*mut c_char] = cx.slice(argv, count, "argv")?;
    // SAFETY: the program promises strings that end in a zero byte.
    let argv: Vec<Vec<u8>> = words
        .iter()
        .filter(|word| !word.is_null())
        .map(|word| unsafe { CStr::from_ptr(*word) }.to_bytes().to_vec())
        .collect();
    *info = cx.register(Info::environment(&argv))?;
    Ok(())
}

pub(crate) fn mpi_info_dup(cx: &Cx, info: &Arc<kinds::Info>, newinfo: &mut Handle) -> Result<()> {
    *newinfo = cx.register(info.dup())?;
    Ok(())
}

pub(crate) fn mpi_info_free(cx: &Cx, info: &mut Handle) -> Result<()> {
    cx.free::<kinds::Info>(info, "info").map(|_| ())
}

pub(crate) fn mpi_info_set(_cx: &Cx, info: &Arc<kinds::Info>, key: &CStr, value: &CStr) -> Result<()> {
    info.set(key.to_bytes(), value.to_bytes())
}

pub(crate) fn mpi_info_delete(_cx: &Cx, info: &Arc<kinds::Info>, key: &CStr) -> Result<()> {
    info.delete(key.to_bytes())
}

pub(crate) fn mpi_info_get_nkeys(_cx: &Cx, info: &Arc<kinds::Info>, nkeys: &mut c_int) -> Result<()> {
    *nkeys = info.len() as c_int;
    Ok(())
}

pub(crate) fn mpi_info_get_nthkey(_cx: &Cx, info: &Arc<kinds::Info>, n: c_int, key: *mut c_char) -> Result<()> {
    let name = info.nth_key(n.into())?;
    // SAFETY: the program promises room for MPI_MAX_INFO_KEY bytes.
    unsafe { args::copy_bytes(key, MAX_KEY_BYTES + 1, &name) };
    Ok(())
}

pub(crate) fn mpi_info_get(
    _cx: &Cx,
    info: &Arc<kinds::Info>,
    key: &CStr,
    valuelen: c_int,
    value: *mut c_char,
    flag: &mut c_int,
) -> Result<()> {
    args::at_least(valuelen.into(), 0, "valuelen", consts::MPI_ERR_ARG)?;
    let found = info.get(key.to_bytes())?;
    *flag = found.is_some().into();
    if let Some(found) = found {
        // SAFETY: the program promises room for `valuelen` bytes and the terminating zero.
        unsafe { args::copy_bytes(value, valuelen as usize + 1, &found) };
    }
    Ok(())
}

pub(crate) fn mpi_info_get_valuelen(
    _cx: &Cx,
    info: &Arc<kinds::Info>,
    key: &CStr,
    valuelen: &mut c_int,
    flag: &mut c_int,
) -> Result<()> {
    let found = info.get(key.to_bytes())?;
    *flag = found.is_some().into();
    if let Some(found) = found {
        *valuelen = found.len() as c_int;
    }
    Ok(())
}

/// Takes and returns `buflen` with the terminating zero: capacity and required length.
pub(crate) fn mpi_info_get_string(
    _cx: &Cx,
    info: &Arc<kinds::Info>,
    key: &CStr,
    buflen: &mut c_int,
    value: *mut c_char,
    flag: &mut c_int,
) -> Result<()> {
    args::at_least((*buflen).into(), 0, "buflen", consts::MPI_ERR_ARG)?;
    let found = info.get(key.to_bytes())?;
    *flag = found.is_some().into();
    let Some(found) = found else { return Ok(()) };
    if *buflen > 0 {
        if value.is_null() {
            return Err(Error::new(
                consts::MPI_ERR_ARG,
                format!("value is a null pointer, but buflen is {buflen}; pass 0 to learn the length"),
            ));
        }
        // SAFETY: the program promises room for `buflen` bytes.
        unsafe { args::copy_bytes(value, *buflen as usize, &found) };
    }
    *buflen = found.len() as c_int + 1;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns value, length and flag of `MPI_Info_get_string` for `room` bytes.
    fn get_string(info: &Arc<Info>, key: &CStr, room: c_int) -> (Vec<u8>, c_int, c_int) {
        let (mut value, mut buflen, mut flag) = ([b'?' as c_char; 16], room, 7);
        mpi_info_get_string(&Cx::new("MPI_Test", false), info, key, &mut buflen, value.as_mut_ptr(), &mut flag)
            .unwrap();
        (value.iter().map(|&c| c as u8).take_while(|&c| c != b'?').collect(), buflen, flag)
    }

    #[test]
    fn get_string_shortens_and_tells_the_length_it_needs() {
        let info = Info::new();
        info.set(b"key", b"value").unwrap();
        assert_eq!(get_string(&info, c"key", 16), (b"value\0".to_vec(), 6, 1));
        assert_eq!(get_string(&info, c"key", 3), (b"va\0".to_vec(), 6, 1));
        assert_eq!(get_string(&info, c"key", 0), (vec![], 6, 1));
        assert_eq!(get_string(&info, c"other", 9), (vec![], 9, 0));
    }

    #[test]
    fn get_shortens_to_the_room_beside_the_terminating_zero() {
        let info = Info::new();
        info.set(b"key", b"value").unwrap();
        let (mut value, mut flag) = ([b'?' as c_char; 16], 0);
        mpi_info_get(&Cx::new("MPI_Test", false), &info, c"key", 2, value.as_mut_ptr(), &mut flag).unwrap();
        assert_eq!((value[..4].iter().map(|&c| c as u8).collect::<Vec<_>>(), flag), (b"va\0?".to_vec(), 1));
        let error =
            mpi_info_get(&Cx::new("MPI_Test", false), &info, c"key", -1, value.as_mut_ptr(), &mut flag).unwrap_err();
        assert_eq!(error.class, consts::MPI_ERR_ARG);
    }

    #[test]
    fn a_command_line_may_be_given_or_not() {
        let cx = Cx::new("MPI_Test", false);
        let mut handle = Handle::default();
        mpi_info_create_env(&cx, 0, std::ptr::null_mut(), &mut handle).unwrap();
        assert!(cx.get::<Info>(handle, "info").unwrap().get(b"command").unwrap().is_some());
        let mut argv = [c"prog".as_ptr().cast_mut(), c"-x".as_ptr().cast_mut()];
        mpi_info_create_env(&cx, 2, argv.as_mut_ptr(), &mut handle).unwrap();
        assert_eq!(cx.get::<Info>(handle, "info").unwrap().get(b"argv").unwrap().unwrap(), b"-x");
    }
}
