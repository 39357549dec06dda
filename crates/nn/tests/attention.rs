//! Attention as a user sees it. Its numbers are held against torch's recorded ones.

use cresset_nn::{Attend, Forward, Module, MultiheadAttention, Result, Tensor, causal_mask};
use cresset_tensor::manual_seed;

fn names(module: &dyn Module) -> Vec<String> {
    module.named_parameters().into_iter().map(|(name, _)| name).collect()
}

fn numbers(tensor: &Tensor) -> Vec<f32> {
    tensor.to_vec().unwrap()
}

fn close(a: &Tensor, b: &Tensor) -> bool {
    numbers(a).iter().zip(numbers(b)).all(|(a, b)| (a - b).abs() < 1e-5)
}

#[test]
fn parameters_have_the_names_and_starts_of_torch() {
    let plain = MultiheadAttention::new(64, 2).unwrap();
    assert_eq!(names(&plain), ["in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias"]);
    let apart = plain.kdim(3).unwrap().vdim(5).unwrap().add_bias_kv(true).unwrap().bias(false).unwrap();
    assert_eq!(
        names(&apart),
        ["q_proj_weight", "k_proj_weight", "v_proj_weight", "bias_k", "bias_v", "out_proj.weight"]
    );
    let most = |tensor: Tensor| numbers(&tensor).iter().fold(0f32, |most, x| most.max(x.abs()));
    let plain = MultiheadAttention::new(64, 2).unwrap();
    assert!((most(plain.in_proj_weight.as_ref().unwrap().tensor()) - 0.153).abs() < 1e-3);
    assert!((most(plain.out_proj.weight.tensor()) - 0.125).abs() < 1e-3);
    assert_eq!(most(plain.out_proj.bias.as_ref().unwrap().tensor()), 0.0);
}

#[test]
fn all_ways_to_say_causal_are_the_same() {
    manual_seed(3);
    let attention = MultiheadAttention::new(8, 2).unwrap();
    let x = Tensor::randn([5, 3, 8], ()).unwrap();
    let mask = causal_mask(5, ()).unwrap();
    let truth = mask.lt(0).unwrap();
    let call = |input: Attend<'_>| attention.call(input).unwrap().0;
    let expected = call(Attend::new(&x, &x, &x).attn_mask(&mask));
    let plain = || Attend::new(&x, &x, &x);
    for input in [
        plain().attn_mask(&truth),
        plain().is_causal(true),
        plain().is_causal(true).need_weights(false),
        plain().attn_mask(&mask).need_weights(false),
        plain().attn_mask(&mask).is_causal(true).need_weights(false),
    ] {
        assert!(close(&call(input), &expected));
    }
    assert!(!close(&call(plain()), &expected));
}

#[test]
fn keys_that_are_padding_do_not_count() {
    manual_seed(4);
    let attention = MultiheadAttention::new(8, 2).unwrap().batch_first(true).unwrap();
    let x = Tensor::randn([2, 4, 8], ()).unwrap();
    let padding = Tensor::new([[false, false, false, true], [false, false, false, true]]).unwrap();
    let short = x.narrow(1, 0, 3).unwrap();
    let (padded, weights) = attention.call(Attend::new(&short, &x, &x).key_padding_mask(&padding)).unwrap();
    let (expected, _) = attention.call(Attend::new(&short, &short, &short)).unwrap();
    assert!(close(&padded, &expected));
    let weights = numbers(&weights.unwrap());
    assert!(weights.chunks(4).all(|row| row[3] == 0.0 && (row.iter().sum::<f32>() - 1.0).abs() < 1e-5));
}

#[test]
fn weights_are_dropped_in_training_only() -> Result<()> {
    manual_seed(5);
    let attention = MultiheadAttention::new(8, 2)?.dropout(0.5)?;
    let x = Tensor::randn([6, 2, 8], ())?;
    for need_weights in [true, false] {
        attention.train();
        let run =
            || attention.call(Attend::new(&x, &x, &x).need_weights(need_weights)).map(|out| numbers(&out.0));
        assert_ne!(run()?, run()?);
        attention.eval();
        assert_eq!(run()?, run()?);
    }
    Ok(())
}

#[test]
fn what_does_not_fit_is_refused_with_the_name_of_the_layer() {
    let ones = |shape: &[usize]| Tensor::ones(shape, ()).unwrap();
    let attention = MultiheadAttention::new(4, 2).unwrap();
    let told = |input: Attend<'_>| attention.call(input).unwrap_err().to_string();
    let (query, key) = (ones(&[3, 5, 4]), ones(&[6, 5, 4]));
    assert_eq!(
        told(Attend::new(&query, &key, &key).attn_mask(&ones(&[6, 3]))),
        "MultiheadAttention: attn_mask is [6, 3], expected [3, 6] or [10, 3, 6]"
    );
    assert_eq!(
        told(Attend::new(&ones(&[3, 5, 3]), &key, &key)),
        "MultiheadAttention: query is [3, 5, 3], expected 4 as the last size"
    );
    let lost = ones(&[6, 4, 4]);
    assert!(told(Attend::new(&query, &lost, &lost)).contains("expected one batch"));
    assert_eq!(
        MultiheadAttention::new(5, 2).err().unwrap().to_string(),
        "MultiheadAttention: embed_dim is 5, expected a multiple of num_heads 2"
    );
}
