//! Maps over every arrangement of memory.

use super::*;
use crate::functions::*;
use crate::testing::{Array, SHAPES, arrangements, operands};
use crate::{Element as _, Float, Number, Scalar, bf16, f16};

const ADD: Add = Add { alpha: Scalar::Int(2) };

fn check_binary<T: Number>() {
    for shape in SHAPES {
        for a in operands::<T>(shape, 1) {
            for b in operands::<T>(shape, 2) {
                for mut out in arrangements::<T>(shape, 3) {
                    binary(ADD, a.view(), b.view(), out.view_mut());
                    let expected: Vec<T> =
                        a.list().into_iter().zip(b.list()).map(|(a, b)| ADD.apply(a, b)).collect();
                    assert_eq!(out.list(), expected);
                }
            }
        }
    }
}

#[test]
fn binary_functions_take_any_arrangement() {
    check_binary::<f32>();
    check_binary::<i32>();
}

#[test]
fn half_precision_takes_any_arrangement() {
    for shape in [&[][..], &[3], &[0], &[3, 5]] {
        for a in operands::<bf16>(shape, 1) {
            for mut out in arrangements::<bf16>(shape, 3) {
                binary(Mul, a.view(), a.view(), out.view_mut());
                assert_eq!(out.list(), a.list().iter().map(|&a| a * a).collect::<Vec<_>>());
            }
        }
    }
}

#[test]
fn in_place_functions_change_what_the_view_picks_and_nothing_else() {
    for shape in SHAPES {
        for a in arrangements::<f32>(shape, 1) {
            for b in operands::<f32>(shape, 2) {
                let mut out = a.clone();
                binary_in_place(ADD, out.view_mut(), b.view());
                let mut expected = a.clone();
                for (a, b) in expected.view_mut().array::<f32>().iter_mut().zip(b.list()) {
                    *a += 2.0 * b;
                }
                assert_eq!(out.elements, expected.elements);
            }
            let mut out = a.clone();
            number_unary_in_place(Neg, out.view_mut());
            assert_eq!(out.list(), a.list().iter().map(|a| -a).collect::<Vec<_>>());
        }
    }
}

#[test]
fn ternary_functions_take_any_arrangement() {
    let f = Addcmul { value: Scalar::Float(0.5) };
    for shape in SHAPES {
        for a in arrangements::<f64>(shape, 1) {
            for b in operands::<f64>(shape, 2) {
                let c = Array::<f64>::random(shape, 4);
                let lists = a.list().into_iter().zip(b.list()).zip(c.list());
                let expected: Vec<f64> = lists.map(|((a, b), c)| a + 0.5 * b * c).collect();
                let mut out = Array::<f64>::zeros(shape);
                float_ternary(f, a.view(), b.view(), c.view(), out.view_mut());
                assert_eq!(out.list(), expected);
                let mut out = a.clone();
                float_ternary_in_place(f, out.view_mut(), b.view(), c.view());
                assert_eq!(out.list(), expected);
            }
        }
    }
}

#[derive(Clone, Copy)]
struct Cube;

impl Unary for Cube {
    fn apply<T: Float>(self, x: T) -> T {
        x * x * x
    }
}

#[test]
fn a_function_from_outside_is_as_good_as_ours() {
    for shape in SHAPES {
        for x in operands::<f32>(shape, 1) {
            for mut out in arrangements::<f32>(shape, 2) {
                unary(Cube, x.view(), out.view_mut());
                assert_eq!(out.list(), x.list().iter().map(|x| x * x * x).collect::<Vec<_>>());
            }
        }
    }
    let mut x = Array::new(&[2], &[f16::from_f32(2.0), f16::from_f32(-1.0)]);
    unary_in_place(Cube, x.view_mut());
    assert_eq!(x.wide(), [8.0, -1.0]);
}

#[test]
fn half_precision_is_rounded_once() {
    // 1 + 2^-11 + 2^-11 is 1 + 2^-10 when rounded once, and 1 when rounded after each addition.
    let (one, tiny) = (f16::ONE, f16::from_f32(2.0f32.powi(-11)));
    let [a, b, c] = [one, tiny, one].map(|x| Array::new(&[], &[x]));
    let mut out = Array::<f16>::zeros(&[]);
    float_ternary(Addcmul { value: Scalar::Float(2.0) }, a.view(), b.view(), c.view(), out.view_mut());
    assert_eq!(out.list(), [f16::from_f32(1.0 + 2.0f32.powi(-10))]);
}

#[test]
fn comparisons_hold_for_every_type_and_nan_is_unequal() {
    let a = Array::new(&[3], &[1.0f32, 2.0, f32::NAN]);
    let b = Array::new(&[], &[2.0f32]).with(|layout| layout.broadcast_to(&[3]).unwrap());
    for (comparison, expected) in [
        (Comparison::Equal, [false, true, false]),
        (Comparison::NotEqual, [true, false, true]),
        (Comparison::Less, [true, false, false]),
        (Comparison::LessEqual, [true, true, false]),
        (Comparison::Greater, [false, false, false]),
        (Comparison::GreaterEqual, [false, true, false]),
    ] {
        let mut out = Array::<bool>::zeros(&[3]);
        compare(comparison, a.view(), b.view(), out.view_mut());
        assert_eq!(out.elements, expected);
    }
    let (a, b) = (Array::new(&[2], &[true, false]), Array::new(&[2], &[false, false]));
    let mut out = Array::<bool>::zeros(&[2]);
    compare(Comparison::Greater, a.view(), b.view(), out.view_mut());
    assert_eq!(out.elements, [true, false]);
}

#[test]
fn select_takes_from_either_side() {
    for shape in SHAPES {
        for condition in operands::<bool>(shape, 1) {
            for a in operands::<i64>(shape, 2) {
                let b = Array::<i64>::random(shape, 3);
                let lists = condition.list().into_iter().zip(a.list()).zip(b.list());
                let expected: Vec<i64> = lists.map(|((c, a), b)| if c { a } else { b }).collect();
                let mut out = Array::<i64>::zeros(shape);
                select(condition.view(), a.view(), b.view(), out.view_mut());
                assert_eq!(out.list(), expected);
            }
        }
    }
}

#[test]
fn fill_changes_what_the_view_picks() {
    let mut x = Array::<i32>::zeros(&[2, 3]).with(|layout| layout.narrow(1, 1, 1));
    fill(Scalar::Float(7.9), x.view_mut());
    assert_eq!(x.elements, [0, 7, 0, 0, 7, 0]);
}

#[test]
fn copies_convert_between_all_types() {
    for from in DType::ALL {
        for to in DType::ALL {
            let numbers = [0.0, 1.0, 3.0, 100.0];
            let from_bool = from == DType::Bool || to == DType::Bool;
            let expected = numbers.map(|x: f64| if from_bool { x.min(1.0) } else { x });
            with_dtype!(from, A => with_dtype!(to, B => {
                let x = Array::new(&[2, 2], &numbers.map(|x| A::from_scalar(Scalar::Float(x))));
                let x = x.with(|layout| layout.transpose(0, 1));
                let mut out = Array::<B>::zeros(&[2, 2]).with(|layout| layout.transpose(0, 1));
                copy(x.view(), out.view_mut());
                assert_eq!(out.elements.iter().map(|x| x.scalar().as_f64()).collect::<Vec<_>>(), expected);
            }));
        }
    }
}

#[test]
fn copies_cut_towards_zero_and_wrap() {
    let x = Array::new(&[4], &[-1.7f32, 2.9, 300.0, f32::NAN]);
    let mut out = Array::<i64>::zeros(&[4]);
    copy(x.view(), out.view_mut());
    assert_eq!(out.elements[..3], [-1, 2, 300]);
    let mut out = Array::<u8>::zeros(&[4]);
    copy(x.view(), out.view_mut());
    assert_eq!(out.elements[1..3], [2, 44]);
    let mut out = Array::<bool>::zeros(&[4]);
    copy(x.view(), out.view_mut());
    assert_eq!(out.elements, [true; 4]);
}

#[test]
fn copies_take_any_arrangement() {
    for shape in SHAPES {
        for from in operands::<f32>(shape, 1) {
            for mut to in arrangements::<f32>(shape, 2) {
                copy(from.view(), to.view_mut());
                assert_eq!(to.list(), from.list());
            }
        }
    }
}

#[test]
#[should_panic(expected = "different shapes [3] and [4]")]
fn operands_of_different_shapes_are_refused() {
    binary(
        Mul,
        Array::<f32>::zeros(&[4]).view(),
        Array::<f32>::zeros(&[3]).view(),
        Array::<f32>::zeros(&[4]).view_mut(),
    );
}

#[test]
#[should_panic(expected = "for floats, not i64")]
fn functions_of_floats_refuse_integers() {
    unary_in_place(Exp, Array::<i64>::zeros(&[1]).view_mut());
}

/// Sizes around the borders of pieces and tiles, near and far.
const LARGE_SHAPES: &[&[usize]] =
    &[&[70_003], &[64, 513], &[130, 67], &[3, 65, 129], &[9, 8, 7, 65], &[300, 259], &[2, 256, 272]];

#[test]
fn large_operands_take_any_arrangement_and_number_of_threads() {
    for shape in LARGE_SHAPES {
        for a in operands::<f32>(shape, 1) {
            for b in operands::<f32>(shape, 2).into_iter().rev().take(3) {
                let expected: Vec<f32> =
                    a.list().into_iter().zip(b.list()).map(|(a, b)| a + 2.0 * b).collect();
                for mut out in arrangements::<f32>(shape, 3).into_iter().take(4) {
                    for count in [1, 2] {
                        crate::with_threads(count, || binary(ADD, a.view(), b.view(), out.view_mut()));
                        assert_eq!(out.list(), expected);
                    }
                }
            }
        }
    }
}

#[test]
fn large_copies_take_every_order_of_dimensions() {
    for shape in LARGE_SHAPES {
        for x in operands::<i16>(shape, 1) {
            let mut out = Array::<i16>::zeros(shape);
            copy(x.view(), out.view_mut());
            assert_eq!(out.elements, x.list());
        }
    }
    let mut x = Array::<f64>::random(&[5, 66, 67, 9], 1);
    for order in [[3, 2, 1, 0], [2, 0, 3, 1], [1, 3, 0, 2], [0, 3, 2, 1]] {
        x.layout = x.layout.permute(&order);
        let mut out = Array::<f64>::zeros(x.layout.shape());
        copy(x.view(), out.view_mut());
        assert_eq!(out.elements, x.list());
        number_unary_in_place(Neg, x.view_mut());
        assert_eq!(x.list(), out.elements.iter().map(|x| -x).collect::<Vec<_>>());
    }
}
