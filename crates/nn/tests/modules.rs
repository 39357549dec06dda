//! Modules as a user sees them.

use cresset_nn::{
    BatchNorm2d, Buffer, Conv2d, DType, Flatten, Forward, Hooked, Hooks, Linear, Module, Parameter, Relu,
    Result, Sequential, Tensor, Training, WeightNorm, summary,
};
use std::any::Any;
use std::sync::{Arc, Mutex};

fn model() -> Sequential {
    let last = Linear::new(4, 2).unwrap().bias(false).unwrap();
    Sequential::new().push(Linear::new(3, 4).unwrap()).push(Relu).push(last)
}

fn names(named: Vec<(String, Tensor)>) -> Vec<String> {
    named.into_iter().map(|(name, _)| name).collect()
}

/// A bit of everything that a module may own.
#[derive(Module)]
struct Everything {
    inner: Linear,
    list: Vec<Linear>,
    #[module(name = "renamed.one")]
    named: Option<Linear>,
    absent: Option<Linear>,
    scale: Parameter,
    mean: Buffer,
    scratch: Buffer,
    training: Training,
    boxed: Box<Linear>,
    width: usize,
    #[module(skip)]
    table: Tensor,
    hooks: Hooks,
}

impl Everything {
    fn new() -> Result<Everything> {
        let linear = || Linear::new(2, 2);
        Ok(Everything {
            inner: linear()?,
            list: vec![linear()?, linear()?.bias(false)?],
            named: Some(linear()?),
            absent: None,
            scale: Parameter::new(Tensor::ones([2], ())?)?,
            mean: Buffer::new(Tensor::zeros([2], ())?),
            scratch: Buffer::transient(Tensor::zeros([1], DType::I64)?),
            training: Training::default(),
            boxed: Box::new(linear()?.bias(false)?),
            width: 2,
            table: Tensor::ones([2], ())?,
            hooks: Hooks::default(),
        })
    }
}

impl Forward for Everything {
    type Output = Tensor;

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let x = self.inner.call(x)?.mul(&self.scale.tensor())?.add(&self.table)?;
        if self.training.is_on() { x.mul(self.width as f64) } else { Ok(x) }
    }
}

#[test]
fn parameters_are_named_by_where_they_are() {
    let named = model().named_parameters();
    let shapes: Vec<_> =
        named.iter().map(|(name, tensor)| (name.as_str(), tensor.shape().to_vec())).collect();
    assert_eq!(shapes, [("0.weight", vec![4, 3]), ("0.bias", vec![4]), ("2.weight", vec![2, 4])]);
    assert!(named.iter().all(|(_, tensor)| tensor.requires_grad() && tensor.is_leaf()));
}

#[test]
fn a_derived_module_owns_its_fields_its_own_before_those_of_others() {
    let module = Everything::new().unwrap();
    assert_eq!(
        names(module.state_dict()),
        [
            "scale",
            "mean",
            "inner.weight",
            "inner.bias",
            "list.0.weight",
            "list.0.bias",
            "list.1.weight",
            "renamed.one.weight",
            "renamed.one.bias",
            "boxed.weight"
        ]
    );
    assert_eq!(names(module.named_buffers()), ["mean", "scratch"]);
    let modules: Vec<_> =
        module.named_modules().iter().map(|(name, m)| format!("{name}:{}", m.class())).collect();
    assert_eq!(
        modules,
        [
            ":Everything",
            "inner:Linear",
            "list.0:Linear",
            "list.1:Linear",
            "renamed.one:Linear",
            "boxed:Linear"
        ]
    );
    assert_eq!(module.num_parameters(), 2 + 6 + 6 + 4 + 6 + 4);
    module.inner.requires_grad_(false).unwrap();
    assert_eq!(module.num_trainable_parameters(), module.num_parameters() - 6);
}

#[test]
fn a_parameter_that_two_modules_share_is_one_parameter_with_two_names() {
    let mut module = Everything::new().unwrap();
    module.list[0].weight = module.inner.weight.clone();
    assert!(!names(module.named_parameters()).contains(&"list.0.weight".to_owned()));
    assert!(names(module.state_dict()).contains(&"list.0.weight".to_owned()));
    module.to(DType::F64).unwrap();
    assert!(module.list[0].weight.same_as(&module.inner.weight));
}

#[test]
fn training_is_set_everywhere_and_read_anywhere() {
    let module = Everything::new().unwrap();
    let x = Tensor::ones([2], ()).unwrap();
    let trained = module.call(&x).unwrap().to_vec::<f32>().unwrap();
    let wrapped = Sequential::new().push(module);
    wrapped.eval();
    let used = wrapped.call(&x).unwrap().to_vec::<f32>().unwrap();
    assert_eq!(trained, used.iter().map(|x| x * 2.0).collect::<Vec<_>>());
    wrapped.train();
    assert_eq!(wrapped.call(&x).unwrap().to_vec::<f32>().unwrap(), trained);
}

#[test]
fn to_changes_floats_and_leaves_counts_and_flags_alone() {
    let module = Everything::new().unwrap();
    module.inner.requires_grad_(false).unwrap();
    module.scale.tensor().sum().unwrap().backward().unwrap();
    module.to(DType::F64).unwrap();
    assert!(module.parameters().iter().all(|tensor| tensor.dtype() == DType::F64 && tensor.is_leaf()));
    assert!(!module.inner.weight.tensor().requires_grad() && module.scale.tensor().requires_grad());
    assert_eq!(module.scale.tensor().grad().unwrap().dtype(), DType::F64);
    let dtypes: Vec<_> = module.named_buffers().iter().map(|(_, tensor)| tensor.dtype()).collect();
    assert_eq!(dtypes, [DType::F64, DType::I64]);
    let error = module.to(DType::I64).unwrap_err().to_string();
    assert_eq!(error, "to: modules are of floats, not of i64");
}

#[test]
fn a_linear_layer_is_what_its_parameters_say() {
    let layer = Linear::new(2, 1).unwrap();
    let state = vec![
        ("weight".to_owned(), Tensor::new([[2.0f32, 3.0]]).unwrap()),
        ("bias".to_owned(), Tensor::new([1.0f32]).unwrap()),
    ];
    layer.load_state_dict(&state).unwrap();
    let out = layer.call(&Tensor::new([[10.0f32, 100.0]]).unwrap()).unwrap();
    assert_eq!(out.to_vec::<f32>().unwrap(), [321.0]);
}

#[test]
fn a_state_that_does_not_fit_lists_every_fault_and_changes_nothing() {
    let model = model();
    let before = model.parameters()[0].to_vec::<f32>().unwrap();
    let state = vec![
        ("0.weight".to_owned(), Tensor::zeros([4, 3], ()).unwrap()),
        ("2.weight".to_owned(), Tensor::zeros([2, 5], ()).unwrap()),
        ("3.weight".to_owned(), Tensor::zeros([1], ()).unwrap()),
    ];
    let error = model.load_state_dict(&state).unwrap_err().to_string();
    assert_eq!(
        error,
        "load_state_dict: 0.bias is missing; 2.weight has shape [2, 5], expected [2, 4]; 3.weight is unknown"
    );
    assert!(model.load_state_dict_partly(&state).is_err(), "a shape that differs is never right");
    assert_eq!(model.parameters()[0].to_vec::<f32>().unwrap(), before);
    let apart = model.load_state_dict_partly(&[state[0].clone(), state[2].clone()]).unwrap();
    assert_eq!(
        (apart.missing, apart.unexpected),
        (vec!["0.bias".into(), "2.weight".into()], vec!["3.weight".into()])
    );
    assert_eq!(model.parameters()[0].to_vec::<f32>().unwrap(), [0.0; 12]);
}

#[test]
fn a_loaded_state_stays_in_the_hands_of_an_optimizer() {
    let model = model();
    let held = model.parameters();
    let other = self::model();
    model.load_state_dict(&other.state_dict()).unwrap();
    assert!(
        held.iter().zip(model.parameters()).all(|(a, b)| a.same_as(&b)),
        "values were copied, not handles"
    );
    assert_eq!(held[0].to_vec::<f32>().unwrap(), other.parameters()[0].to_vec::<f32>().unwrap());
}

#[test]
fn apply_meets_inner_modules_first_and_knows_their_types() {
    let model = Sequential::new().push(model()).push(Relu);
    let mut seen = Vec::new();
    model
        .apply(&mut |module| {
            let linear = (module as &dyn Any).downcast_ref::<Linear>();
            seen.push((module.class(), linear.is_some()));
            Ok(())
        })
        .unwrap();
    let expected = [("Linear", true), ("Relu", false), ("Linear", true), ("Sequential", false)];
    assert_eq!(seen[..4], expected);
    assert_eq!(seen[4..], [("Relu", false), ("Sequential", false)]);
}

#[test]
fn sizes_of_zero_are_refused() {
    let error = Linear::new(0, 3).err().unwrap();
    assert_eq!(error.to_string(), "Linear: in_features is 0, expected at least 1");
}

#[test]
fn zero_grad_forgets_gradients() {
    let model = model();
    model.call(&Tensor::ones([2, 3], ()).unwrap()).unwrap().sum().unwrap().backward().unwrap();
    assert!(model.parameters().iter().all(|parameter| parameter.grad().is_some()));
    model.zero_grad();
    assert!(model.parameters().iter().all(|parameter| parameter.grad().is_none()));
}

#[test]
fn forward_hooks_see_and_replace_what_goes_in_and_out() {
    let layer = Hooked::new(Relu);
    let x = Tensor::new([-1.0f32, 2.0]).unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let before = layer
        .register_forward_pre_hook(|inputs| {
            *inputs[0] = inputs[0].neg()?;
            Ok(())
        })
        .unwrap();
    let note = seen.clone();
    let after = layer
        .register_forward_hook(move |inputs, outputs| {
            note.lock().unwrap().push((inputs[0].to_vec::<f32>()?, outputs[0].to_vec::<f32>()?));
            *outputs[0] = outputs[0].add(10.0)?;
            Ok(())
        })
        .unwrap();
    assert_eq!(layer.call(&x).unwrap().to_vec::<f32>().unwrap(), [11.0, 10.0]);
    assert_eq!(*seen.lock().unwrap(), [(vec![1.0, -2.0], vec![1.0, 0.0])]);
    before.remove();
    after.remove();
    assert_eq!(layer.call(&x).unwrap().to_vec::<f32>().unwrap(), [0.0, 2.0]);
    let error = Relu.register_forward_hook(|_, _| Ok(())).err().unwrap().to_string();
    assert!(error.contains("Relu has no place for hooks"), "{error}");
}

#[test]
fn backward_hooks_see_the_gradients_of_one_call_and_may_replace_them() {
    let layer = Linear::new(2, 1).unwrap();
    let weight = Tensor::new([[2.0f32, 3.0]]).unwrap();
    layer.weight.replace(weight).unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let note = seen.clone();
    layer
        .register_full_backward_hook(move |inputs, outputs| {
            let both = [&inputs[0], &outputs[0]].map(|grad| grad.as_ref().unwrap().to_vec::<f32>());
            note.lock().unwrap().push(both.into_iter().collect::<Result<Vec<_>>>()?);
            inputs[0] = Some(inputs[0].as_ref().unwrap().mul(10.0)?);
            Ok(())
        })
        .unwrap();
    let before = layer
        .register_full_backward_pre_hook(|outputs| {
            outputs[0] = Some(outputs[0].as_ref().unwrap().mul(2.0)?);
            Ok(())
        })
        .unwrap();
    let x = Tensor::ones([1, 2], ()).unwrap().with_grad().unwrap();
    // The other use of x is nobody's business in the hook.
    let loss = layer.call(&x).unwrap().sum().unwrap().add(&x.sum().unwrap()).unwrap();
    loss.backward().unwrap();
    assert_eq!(*seen.lock().unwrap(), [[vec![4.0, 6.0], vec![2.0]]]);
    assert_eq!(x.grad().unwrap().to_vec::<f32>().unwrap(), [41.0, 61.0]);
    assert_eq!(layer.weight.tensor().grad().unwrap().to_vec::<f32>().unwrap(), [2.0, 2.0]);
    before.remove();
}

#[test]
fn a_backward_hook_of_a_first_layer_has_no_gradient_of_its_input() {
    let layer = Linear::new(2, 1).unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let note = seen.clone();
    layer
        .register_full_backward_hook(move |inputs, outputs| {
            note.lock().unwrap().push((inputs[0].is_none(), outputs[0].is_some()));
            Ok(())
        })
        .unwrap();
    layer.call(&Tensor::ones([1, 2], ()).unwrap()).unwrap().sum().unwrap().backward().unwrap();
    assert_eq!(*seen.lock().unwrap(), [(true, true)]);
}

#[test]
fn a_normed_weight_is_learned_as_a_length_and_a_direction() {
    let layer = Linear::new(3, 2).unwrap();
    let (x, plain) = (Tensor::randn([4, 3], ()).unwrap(), layer.weight.tensor().to_vec::<f32>().unwrap());
    let before = layer.call(&x).unwrap().to_vec::<f32>().unwrap();
    let layer = WeightNorm::new(layer, 0).unwrap();
    let after = layer.call(&x).unwrap().to_vec::<f32>().unwrap();
    assert!(before.iter().zip(&after).all(|(a, b)| (a - b).abs() < 1e-5), "the weight stays what it is");
    layer.call(&x).unwrap().sum().unwrap().backward().unwrap();
    let grads: Vec<_> =
        layer.named_parameters().into_iter().map(|(name, x)| (name, x.grad().unwrap())).collect();
    let [(_, bias), (_, length), (_, direction)] = &grads[..] else { panic!("{grads:?}") };
    assert_eq!((bias.shape(), length.shape(), direction.shape()), (&[2][..], &[2, 1][..], &[2, 3][..]));
    // A direction's gradient has no part along the direction itself.
    let along =
        direction.mul(&Tensor::from_slice(&plain, [2, 3]).unwrap()).unwrap().sum_dims(&[1], false).unwrap();
    assert!(along.to_vec::<f32>().unwrap().iter().all(|x| x.abs() < 1e-4), "{along}");
    let layer = layer.remove().unwrap();
    assert!(layer.weight.tensor().is_leaf() && layer.parameters().len() == 2);
}

#[test]
fn a_summary_shows_shapes_parameters_and_work() {
    let model = Sequential::new()
        .push(Conv2d::new(1, 4, 3).unwrap().padding(1).unwrap())
        .push(Sequential::new().push(BatchNorm2d::new(4).unwrap()).push(Relu))
        .push(Flatten::default())
        .push(Linear::new(4 * 6 * 6, 10).unwrap());
    model.get(3).unwrap().requires_grad_(false).unwrap();
    let found = summary(&model, &Tensor::ones([2, 1, 6, 6], ()).unwrap()).unwrap();
    let rows: Vec<_> = found
        .rows
        .iter()
        .map(|row| {
            (row.depth, row.class.as_str(), row.name.as_str(), &row.output_shapes[0][..], row.num_params)
        })
        .collect();
    assert_eq!(
        rows,
        [
            (0, "Sequential", "", &[2, 10][..], 40 + 8 + 1450),
            (1, "Conv2d", "0", &[2, 4, 6, 6], 40),
            (1, "Sequential", "1", &[2, 4, 6, 6], 8),
            (2, "BatchNorm2d", "1.0", &[2, 4, 6, 6], 8),
            (2, "Relu", "", &[2, 4, 6, 6], 0),
            (1, "Flatten", "2", &[2, 144], 0),
            (1, "Linear", "3", &[2, 10], 1450),
        ]
    );
    assert_eq!((found.total_params, found.trainable_params), (1498, 48));
    assert_eq!(found.rows[6].flops, 2 * 2 * 144 * 10);
    assert_eq!(found.total_flops, found.rows[0].flops);
    assert!(found.rows[1].flops >= 2 * 2 * 36 * 9 * 4, "{}", found.rows[1].flops);
    let text = found.to_string();
    assert!(text.contains("├─Conv2d (0): 1-1") && text.contains("│    ├─BatchNorm2d (0): 2-1"), "{text}");
    assert!(
        text.contains("Total params: 1,498\nTrainable params: 48\nNon-trainable params: 1,450"),
        "{text}"
    );
    let norm = model.named_buffers();
    let seen = norm.iter().find(|(name, _)| name == "1.0.num_batches_tracked").unwrap();
    assert_eq!(seen.1.to_vec::<i64>().unwrap(), [0], "a summary does not train");
}
