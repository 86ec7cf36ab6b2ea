#!/usr/bin/env python3
"""Derive the project's table of MPI-5 (`api/mpi5.json`) from the MPI Forum's machine-readable description.

    python3 api/derive.py <directory with mpi-standard-5.0-apis.json and mpi-standard-5.0-abi.json> [output]

Only facts are carried over: names, kinds, directions, array lengths, constant values. What the description does not say
is written down here, as data: the C type of each parameter kind, the chapter of each function, and the functions that
are not exported symbols. The output has one function, constant or kind per line, so that a change of the standard reads
as a diff.
"""

import json
import pathlib
import re
import sys

# C type of each parameter kind: (type, type in the `_c` twin if that differs). `None` means that the C declaration
# depends on the parameter and is spelled out by the generators (functions, varargs).
KINDS = {
    # handles
    "COMMUNICATOR": "MPI_Comm",
    "DATATYPE": "MPI_Datatype",
    "ERRHANDLER": "MPI_Errhandler",
    "FILE": "MPI_File",
    "GROUP": "MPI_Group",
    "INFO": "MPI_Info",
    "MESSAGE": "MPI_Message",
    "OPERATION": "MPI_Op",
    "REQUEST": "MPI_Request",
    "SESSION": "MPI_Session",
    "WINDOW": "MPI_Win",
    # handles of the tool information interface
    "TOOLS_ENUM": "MPI_T_enum",
    "CVAR": "MPI_T_cvar_handle",
    "PVAR": "MPI_T_pvar_handle",
    "PVAR_SESSION": "MPI_T_pvar_session",
    "EVENT_REGISTRATION": "MPI_T_event_registration",
    "EVENT_INSTANCE": "MPI_T_event_instance",
    # buffers and untyped pointers
    "BUFFER": "void *",
    "C_BUFFER": "void *",
    "C_BUFFER2": "void *",
    "C_BUFFER3": "void *",
    "C_BUFFER4": "void *",
    "ATTRIBUTE_VAL": "void *",
    "ATTRIBUTE_VAL_10": "void *",
    "EXTRA_STATE": "void *",
    "EXTRA_STATE2": "void *",
    "LOGICAL_VOID": "void *",
    "TOOL_MPI_OBJ": "void *",
    # text
    "STRING": "char *",
    "STRING_ARRAY": "char **",
    "STRING_2DARRAY": "char ***",
    "ARGUMENT_LIST": "char ***",
    # status
    "STATUS": "MPI_Status",
    "F90_STATUS": "MPI_Fint",
    "F08_STATUS": "MPI_F08_status",
    # numbers with a twin
    "POLYDISPLACEMENT": ("int", "MPI_Aint"),
    "POLYDISPLACEMENT_COUNT": ("int", "MPI_Count"),
    "POLYDISPLACEMENT_AINT_COUNT": ("MPI_Aint", "MPI_Count"),
    "POLYDISPOFFSET": ("MPI_Aint", "MPI_Count"),
    "POLYDTYPE_NUM_ELEM": ("int", "MPI_Count"),
    "POLYDTYPE_NUM_ELEM_NNI": ("int", "MPI_Count"),
    "POLYDTYPE_NUM_ELEM_PI": ("int", "MPI_Count"),
    "POLYDTYPE_PACK_SIZE": ("MPI_Aint", "MPI_Count"),
    "POLYDTYPE_STRIDE_BYTES": ("MPI_Aint", "MPI_Count"),
    "POLYLOCATION": ("MPI_Aint", "MPI_Count"),
    "POLYNUM_BYTES": ("int", "MPI_Count"),
    "POLYNUM_BYTES_NNI": ("int", "MPI_Count"),
    "POLYNUM_PARAM_VALUES": ("int", "MPI_Count"),
    "POLYRMA_DISPLACEMENT": ("int", "MPI_Aint"),
    "POLYXFER_NUM_ELEM": ("int", "MPI_Count"),
    "POLYXFER_NUM_ELEM_NNI": ("int", "MPI_Count"),
    # wide numbers without a twin
    "ALLOC_MEM_NUM_BYTES": "MPI_Aint",
    "DISPLACEMENT": "MPI_Aint",
    "DISPLACEMENT_NNI": "MPI_Aint",
    "DISPOFFSET_SMALL": "MPI_Aint",
    "DISPLACEMENT_AINT_NNI": "MPI_Aint",
    "LOCATION_SMALL": "MPI_Aint",
    "RMA_DISPLACEMENT_NNI": "MPI_Aint",
    "WINDOW_SIZE": "MPI_Aint",
    "WIN_ATTACH_SIZE": "MPI_Aint",
    "OFFSET": "MPI_Offset",
    "NUM_BYTES": "MPI_Count",
    "GENERIC_DTYPE_COUNT": "MPI_Count",
    "XFER_NUM_ELEM": "MPI_Count",
    "XFER_NUM_ELEM_NNI": "MPI_Count",
    "TOOLS_TICK_COUNT": "MPI_Count",
    "DROPPED_COUNT": "MPI_Count",
    # enumerations of the tool information interface
    "CALLBACK_SAFETY": "MPI_T_cb_safety",
    "SOURCE_ORDERING": "MPI_T_source_order",
    # functions
    "FUNCTION": None,
    "FUNCTION_SMALL": None,
    "POLYFUNCTION": None,
    "EVENT_CB_FUNCTION": None,
    "EVENT_DROP_CB_FUNCTION": None,
    "EVENT_FREE_CB_FUNCTION": None,
    "VARARGS": None,
    # return values
    "WALL_TIME": "double",
    "TICK_RESOLUTION": "double",
    "NOTHING": "void",
}
FUNCTION_TYPES = {
    "EVENT_CB_FUNCTION": "MPI_T_event_cb_function",
    "EVENT_DROP_CB_FUNCTION": "MPI_T_event_dropped_cb_function",
    "EVENT_FREE_CB_FUNCTION": "MPI_T_event_free_cb_function",
}
# Every other kind is a C int. The list is spelled out so that a kind that a later edition adds is noticed.
INT_KINDS = """
ACCESS_MODE ARGUMENT_COUNT ARRAY_LENGTH ARRAY_LENGTH_NNI ARRAY_LENGTH_PI ASSERT BIND_TYPE CAT_INDEX COLOR COMBINER
COMM_COMPARISON COMM_SIZE COMM_SIZE_PI COORDINATE CVAR_INDEX CVAR_INDEX_SPECIAL DEGREE DIMENSION DISTRIB_ENUM
DTYPE_DISTRIBUTION ERROR_CLASS ERROR_CODE EVENT_INDEX FILE_DESCRIPTOR GENERIC_DTYPE_INT GROUP_COMPARISON INDEX
INFO_VALUE_LENGTH KEY KEYVAL KEY_INDEX LOCK_TYPE LOGICAL LOGICAL_OPTIONAL MATH NUM_DIMS ORDER PARTITION
PROCESS_GRID_SIZE PROFILE_LEVEL PVAR_CLASS PVAR_INDEX RANK RANK_NNI SOURCE_INDEX SPLIT_TYPE STRING_LENGTH TAG
THREAD_LEVEL TOOLENUM_INDEX TOOLENUM_SIZE TOOLS_NUM_ELEM_SMALL TOOL_VAR_VALUE TOOL_VAR_VERBOSITY TOPOLOGY_TYPE TYPECLASS
TYPECLASS_SIZE UPDATE_MODE UPDATE_NUMBER VARIABLE_SCOPE VERSION WEIGHT
""".split()

# Handle types, in the order of their predefined values, with the error class of a bad handle.
HANDLES = [
    ("OPERATION", "MPI_Op", "MPI_OP_NULL", "MPI_ERR_OP"),
    ("COMMUNICATOR", "MPI_Comm", "MPI_COMM_NULL", "MPI_ERR_COMM"),
    ("GROUP", "MPI_Group", "MPI_GROUP_NULL", "MPI_ERR_GROUP"),
    ("WINDOW", "MPI_Win", "MPI_WIN_NULL", "MPI_ERR_WIN"),
    ("FILE", "MPI_File", "MPI_FILE_NULL", "MPI_ERR_FILE"),
    ("SESSION", "MPI_Session", "MPI_SESSION_NULL", "MPI_ERR_SESSION"),
    ("MESSAGE", "MPI_Message", "MPI_MESSAGE_NULL", "MPI_ERR_REQUEST"),
    ("INFO", "MPI_Info", "MPI_INFO_NULL", "MPI_ERR_INFO"),
    ("ERRHANDLER", "MPI_Errhandler", "MPI_ERRHANDLER_NULL", "MPI_ERR_ERRHANDLER"),
    ("REQUEST", "MPI_Request", "MPI_REQUEST_NULL", "MPI_ERR_REQUEST"),
    ("DATATYPE", "MPI_Datatype", "MPI_DATATYPE_NULL", "MPI_ERR_TYPE"),
]

STATUS = {
    "size": 32,
    "fields": [
        ["MPI_SOURCE", "int", 1, 0],
        ["MPI_TAG", "int", 1, 4],
        ["MPI_ERROR", "int", 1, 8],
        ["MPI_internal", "int", 5, 12],
    ],
}

# Names that the standard's ABI library exports beyond those of the description: its partitioned functions already take
# an MPI_Count, and the ABI has twins of the same signature for them.
EXTRA_TWINS = {"MPI_Psend_init", "MPI_Precv_init"}

# The chapters, in the order of the standard.
CHAPTER_ORDER = [
    "Point-to-point communication",
    "Partitioned communication",
    "Datatypes",
    "Collective communication",
    "Groups, communicators, caching",
    "Process topologies",
    "Environment",
    "Info",
    "Process creation and management",
    "One-sided communication",
    "External interfaces",
    "I/O",
    "Tool support",
    "Deprecated interfaces",
    "Language bindings",
    "ABI",
]

# Chapter of a function: the first rule that matches its name.
CHAPTERS = [
    ("Tool support", r"MPI_T_|MPI_Pcontrol"),
    ("ABI", r"MPI_Abi_|.*_(toint|fromint)$"),
    ("Language bindings", r".*_(c2f|f2c|c2f08|f082c|f082f|f2f08)$|MPI_Type_create_f90_|MPI_Type_match_size"),
    (
        "Deprecated interfaces",
        r"MPI_Attr_|MPI_Keyval_|MPI_(Info_get|Info_get_valuelen|Get_elements_x|Status_set_elements_x|"
        r"Type_(get_extent_x|get_true_extent_x|size_x))$",
    ),
    ("I/O", r"MPI_File_(?!.*errhandler)|MPI_Register_datarep"),
    (
        "One-sided communication",
        r"MPI_(Win_(?!.*(errhandler|keyval|_attr|_name))|R?(?i:put|get|accumulate|get_accumulate)$|"
        r"Fetch_and_op|Compare_and_swap)",
    ),
    ("Partitioned communication", r"MPI_P(send_init|recv_init|ready|arrived)"),
    ("Info", r"MPI_Info_"),
    (
        "Environment",
        r"MPI_(Get_(version|library_version|processor_name|hw_resource_info)|.*errhandler|Errhandler_|Error_|Add_error|"
        r"Remove_error|Alloc_mem|Free_mem|Wtime|Wtick)",
    ),
    (
        "Process creation and management",
        r"MPI_(Comm_(spawn|accept|connect|disconnect|get_parent|join)|(Open|Close)_port|"
        r"(Publish|Unpublish|Lookup)_name|Init|Finalize|Abort|Is_thread_main|Query_thread|"
        r"Session_(?!.*buffer))",
    ),
    ("External interfaces", r"MPI_(Grequest|Status_set_(cancelled|elements))"),
    ("Process topologies", r"MPI_(Cart|Graph|Dist_graph|Dims|Topo|Neighbor|Ineighbor)"),
    (
        "Groups, communicators, caching",
        r"MPI_(Group_|Comm_(?!.*buffer)|Intercomm_|.*_keyval|.*_(set|get|delete)_attr|.*_(set|get)_name)",
    ),
    ("Datatypes", r"MPI_(Type_|Pack|Unpack|Get_address|Aint_|Get_elements)"),
    (
        "Collective communication",
        r"MPI_I?(?i:barrier|bcast|gather|scatter|all(gather|reduce|toall)|reduce|scan|exscan)|MPI_Op_",
    ),
    ("Point-to-point communication", r"MPI_"),
]

FORTRAN_ONLY = re.compile(r".*_(c2f|f2c|c2f08|f082c|f082f|f2f08)$")


def parameter(raw):
    """One parameter as a dictionary without empty entries."""
    out = {"name": raw["name"], "kind": raw["kind"], "dir": raw["param_direction"]}
    if raw["constant"]:
        out["const"] = True
    if raw["length"] is not None:
        out["array"] = raw["length"]
    if raw["pointer"] is not None:
        out["pointer"] = raw["pointer"]
    if raw["func_type"]:
        out["func"] = raw["func_type"]
    elif raw["kind"] in FUNCTION_TYPES:
        out["func"] = FUNCTION_TYPES[raw["kind"]]
    if raw["root_only"]:
        out["root"] = True
    if raw["large_only"]:
        out["large_only"] = True
    if raw["asynchronous"]:
        out["async"] = True
    return out


def signature(raw):
    """Name, result and C parameters of a function or function type."""
    params = [parameter(p) for p in raw["parameters"] if "c_parameter" not in p["suppress"]]
    out = {"name": raw["name"], "returns": raw["return_kind"]}
    if any(p["kind"].startswith("POLY") or p.get("large_only") for p in params) or raw["name"] in EXTRA_TWINS:
        out["large"] = True
    out["params"] = params
    return out


def chapter(name):
    return next(title for title, rule in CHAPTERS if re.match(rule, name))


def derive_functions(apis):
    """The functions and the types of callbacks."""
    functions, callbacks = [], []
    for raw in apis.values():
        attributes = raw["attributes"]
        if not attributes["c_expressible"] or attributes["predefined_function"]:
            continue  # Fortran only, or a constant of the ABI (MPI_COMM_DUP_FN ...)
        sig = signature(raw)
        if attributes["callback"]:
            callbacks.append(sig)
            continue
        sig = {"name": sig.pop("name"), "chapter": chapter(raw["name"]), **sig}
        if not attributes["f08_expressible"]:
            sig["fortran"] = "mpi" if attributes["f90_expressible"] else "none"
        if FORTRAN_ONLY.match(raw["name"]):
            sig["symbol"] = (
                False  # takes MPI_Fint, which the C ABI does not know: mpi.h defines it, the library does not export it
            )
        functions.append(sig)
    return functions, callbacks


def derive_constants(abi):
    """The constants with their values and the names of datatypes in the languages."""
    constants = []
    for raw in abi["constants"].values():
        types = raw["handle_types"]
        entry = {"name": raw["name"], "category": raw["category"], "value": raw["abi_value"]}
        c_type = types["c"]["type"]
        if raw["name"] == "MPI_DISPLACEMENT_CURRENT":
            c_type = "MPI_Offset"  # the description says int; as an argument it is an MPI_Offset
        if c_type:
            entry["type"] = c_type.replace(" *", "*")
        if isinstance(entry["value"], str):
            entry["value"] = re.sub(r"\\code\{(.*)\}", r"\1", entry["value"])
        names = raw["datatypes"]
        for language, key in (("c", "c"), ("cpp", "cpp"), ("f08", "fortran")):
            named = (names.get(language) or {}).get("type")
            if named and not named.startswith("("):
                entry[key] = named
        constants.append(entry)
    return constants


def derive_kinds(functions):
    """The kinds of parameters and results that occur, with their C types."""
    used = {p["kind"] for f in functions for p in f["params"]} | {f["returns"] for f in functions}
    kinds = []
    for kind in sorted(used):
        if kind in INT_KINDS:
            c_type = "int"
        elif kind.startswith("F90_") and kind != "F90_STATUS":
            c_type = "MPI_Fint"
        elif kind in KINDS:
            c_type = KINDS[kind]
        else:
            sys.exit(f"parameter kind {kind} is unknown: add its C type to KINDS or INT_KINDS")
        entry = {"kind": kind}
        if isinstance(c_type, tuple):
            entry["c"], entry["large"] = c_type
        elif c_type:
            entry["c"] = c_type
        kinds.append(entry)
    return kinds


def derive(apis, abi):
    functions, callbacks = derive_functions(apis)
    constants, kinds = derive_constants(abi), derive_kinds(functions + callbacks)
    handles = [{"kind": k, "type": t, "null": n, "error": e} for k, t, n, e in HANDLES]
    return {
        "mpi": [abi["metadata"]["mpi"]["version"], abi["metadata"]["mpi"]["subversion"]],
        "abi": [abi["metadata"]["abi"]["version"], abi["metadata"]["abi"]["subversion"]],
        "status": STATUS,
        "chapters": CHAPTER_ORDER,
        "handles": handles,
        "kinds": kinds,
        "constants": constants,
        "callbacks": callbacks,
        "functions": functions,
    }


def write(table, out):
    """JSON with one entry of each list per line."""
    parts = []
    for key, value in table.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            rows = ",\n".join("  " + json.dumps(row) for row in value)
            parts.append(f'"{key}": [\n{rows}\n]')
        else:
            parts.append(f'"{key}": {json.dumps(value)}')
    out.write("{\n" + ",\n".join(parts) + "\n}\n")


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    source = pathlib.Path(sys.argv[1])
    target = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else pathlib.Path(__file__).with_name("mpi5.json")
    apis = json.loads((source / "mpi-standard-5.0-apis.json").read_text())
    abi = json.loads((source / "mpi-standard-5.0-abi.json").read_text())
    with target.open("w") as out:
        write(derive(apis, abi), out)


if __name__ == "__main__":
    main()
