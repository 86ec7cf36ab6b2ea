"""Octave values as bytes: every class comes back as it was; damaged bytes are an error and never a crash."""

from __future__ import annotations

VALUES = """
    function same (value)
      copy = limosa_deserialize (limosa_serialize (value));
      alike = isequal (class (value), class (copy)) && isequaln (value, copy) ...
        && isequal (size (value), size (copy)) && issparse (value) == issparse (copy) ...
        && iscomplex (value) == iscomplex (copy) && isdiag (value) == isdiag (copy);
      if (! alike)
        value, copy
        error ("not the same");
      end
    end
"""


def test_numbers_characters_and_logical_values_come_back(octave):
    octave.code_in_turn(
        "1;"
        + VALUES
        + """
        for class_name = {"double", "single", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"}
          for shape = {[1 1], [0 0], [0 3], [1 0], [3 0 2], [4 1], [2 3], [2 3 2], [2 1 2 3], [2 1 2 1 3], ones(1, 9)}
            same (cast (reshape (1:prod (shape{1}), shape{1}), class_name{1}));
          end
        end
        same (intmax ("uint64")); same (intmin ("int64")); same (NaN); same (-Inf); same (-0);
        same (complex (1, 0)); same (complex ([1 2; 3 4], 0)); same (single (1i)); same (rand (2, 2, 2) * 1i);
        same (true); same ([true false; false true]); same (logical ([]));
        same ('abc'); same ("abc"); same (['ab'; 'cd']); same (''); same (""); same (char (0:255));
        same (1:5); same (0:0.1:1); same (5:-1:1); same (1:0); same (int32 (1):int32 (4)); same (eye (3));
        same (eye (3)([2 1 3], :)); same (find ([0 1 1]));
        printf ("%d%d\\n", typecast (1.5, "uint8") == typecast (limosa_deserialize (limosa_serialize (1.5)), "uint8"));
        """,
        n=1,
    )


def test_quotes_are_kept(octave):
    outcome = octave.code_in_turn(
        """
        for text = {'a', "a"}
          copy = limosa_deserialize (limosa_serialize ({text{1}}));
          printf ("%s ", typeinfo (limosa_deserialize (limosa_serialize (text{1}))), typeinfo (copy{1}));
        end
        """,
        n=1,
    )
    assert outcome.out.replace("sq_string", "S").replace("string", "D").split() == ["S", "S", "D", "D"]


def test_sparse_matrices_cells_and_structs_come_back(octave):
    octave.code_in_turn(
        "1;"
        + VALUES
        + """
        same (sparse ([1 0; 0 2])); same (sparse ([1i 0])); same (sparse ([true false])); same (sparse (3, 4));
        same (sprand (50, 40, 0.1)); same (sparse (0, 5));
        same ({}); same (cell (0, 3)); same ({1, 'a', {2, {}}; [], "b", sparse(1)}); same (cell (2, 2, 2));
        same (struct ()); same (struct ("a", {1, 2, 3})); same (struct ("a", {{1}})); same (repmat (struct (), 0, 3));
        same (repmat (struct ("x", 1), [2 1 2])); same (struct ("a", struct ("b", {{1, "c"}})));
        """,
        n=1,
    )


def test_functions_maps_and_old_objects_come_back(octave):
    outcome = octave.code_in_turn(
        """
        again = @(value) limosa_deserialize (limosa_serialize (value));
        a = 3; b = @(y) y * 2; f = again (@(x) x + a + b(x)); clear a b
        printf ("%g ", f (1), again (@sin) (0), again (@plus) (1, 2), cellfun (again ({@(v) v + 1}){1}, {4}));
        map = containers.Map ({"one", "two"}, {1, {2}});
        copy = again (map);
        printf ("%s ", strjoin (keys (copy), ","), class (copy("two")));
        numbers = again (containers.Map ("KeyType", "double", "ValueType", "any"));
        printf ("%s %d ", numbers.KeyType, numbers.Count);
        warning ("off", "Octave:legacy-function");
        power = again (inline ("x ^ 2"));
        printf ("%s %g\\n", class (power), power (3));
        """,
        n=1,
    )
    assert outcome.out.split() == ["6", "0", "3", "5", "one,two", "cell", "double", "0", "inline", "9"]


def test_what_cannot_be_sent_is_named(octave):
    outcome = octave.code_in_turn(
        """
        function inner ()
          nest = {};
          for i = 1:2000 nest = {nest}; end
          for value = {inputParser(), {inputParser()}, nest}
            try
              limosa_serialize (value{1});
            catch problem
              printf ("%s|%s\\n", problem.identifier, problem.message);
            end
          end
        end
        inner ();
        """,
        n=1,
    )
    lines = outcome.out.splitlines()
    assert [line.split("|")[0] for line in lines] == ["limosa:class"] * 3
    assert "'inputParser'" in lines[0] and "'inputParser'" in lines[1] and "nested" in lines[2]


def test_damaged_bytes_are_an_error(octave):
    outcome = octave.code_in_turn(
        """
        rand ("seed", 1);
        captured = 7;
        values = {1, 1:10, "text", {1, "a", {2}}, struct("a", {1, {2}}), sparse([1 0; 2 3]), @sin, ...
                  @(x) x + captured, complex(1, 2), true, int8(1:3), containers.Map({"k"}, {1}), ...
                  zeros(2, 2, 2, 2, 2), sparse([true false])};
        refused = taken = 0;
        for value = values
          bytes = limosa_serialize (value{1});
          for turn = 1:400
            wrong = bytes;
            if (mod (turn, 3) == 0)
              wrong = bytes(1:floor (rand () * numel (bytes)));
            elseif (mod (turn, 3) == 1)
              place = 1 + floor (rand () * numel (bytes));
              wrong(place) = bitxor (wrong(place), uint8 (2 ^ floor (rand () * 8)));
            else
              place = 1 + floor (rand () * max (numel (bytes) - 8, 1));
              wrong(place:min (place + 7, end)) = uint8 (floor (rand () * 256));
            end
            try
              copy = limosa_deserialize (wrong);
              taken++;
            catch problem
              refused++;
              if (! any (strcmp (problem.identifier, {"limosa:damaged", "Octave:undefined-function"})))
                printf ("%s: %s\\n", problem.identifier, problem.message);
              end
            end
          end
        end
        printf ("%d %d\\n", refused > 1000, taken + refused == 400 * numel (values));
        """,
        n=1,
    )
    assert outcome.out.splitlines() == ["1 1"]
