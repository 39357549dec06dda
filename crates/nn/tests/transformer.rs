//! Transformers as a user sees them. Their numbers are held against torch's recorded ones.

use cresset_nn::{
    Decode, Encode, Forward, LayerNorm, Module, Result, Tensor, Transform, Transformer, TransformerDecoder,
    TransformerDecoderLayer, TransformerEncoder, TransformerEncoderLayer,
};

#[test]
fn parameters_have_the_names_of_torch_in_its_order() -> Result<()> {
    let names = |module: &dyn Module| -> Vec<String> {
        module.named_parameters().into_iter().map(|(name, _)| name).collect()
    };
    let model = Transformer::new(4, 2, 1, 1, 8)?;
    let names = names(&model);
    assert_eq!(names.len(), 34);
    assert_eq!(names[0], "encoder.layers.0.self_attn.in_proj_weight");
    assert_eq!(
        names[12..15],
        ["encoder.norm.weight", "encoder.norm.bias", "decoder.layers.0.self_attn.in_proj_weight"]
    );
    assert_eq!(names[18], "decoder.layers.0.multihead_attn.in_proj_weight");
    assert_eq!(names[22], "decoder.layers.0.linear1.weight");
    assert_eq!(names[33], "decoder.norm.bias");
    let without = model.bias(false)?;
    assert!(without.named_parameters().iter().all(|(name, _)| !name.contains("bias")));
    Ok(())
}

#[test]
fn all_matrices_of_a_whole_transformer_start_by_what_they_join() -> Result<()> {
    let model = Transformer::new(64, 2, 1, 1, 64)?;
    for (name, tensor) in model.named_parameters().into_iter().filter(|(_, tensor)| tensor.dim() == 2) {
        let most = tensor.to_vec::<f32>()?.iter().fold(0f32, |most, x| most.max(x.abs()));
        let expected = if name.contains("in_proj") { 0.1531 } else { 0.2165 };
        assert!((most - expected).abs() < 2e-3, "{name} reaches {most}, expected {expected}");
    }
    Ok(())
}

#[test]
fn a_causal_encoder_does_not_look_ahead() -> Result<()> {
    let layers = vec![TransformerEncoderLayer::new(8, 2, 16)?, TransformerEncoderLayer::new(8, 2, 16)?];
    let encoder = TransformerEncoder::new(layers)?.norm(LayerNorm::new(8)?)?;
    encoder.eval();
    let x = Tensor::randn([5, 1, 8], ())?;
    let start = x.narrow(0, 0, 3)?;
    let whole = encoder.call(Encode::new(&x).is_causal(true))?.narrow(0, 0, 3)?.to_vec::<f32>()?;
    let alone = encoder.call(Encode::new(&start).is_causal(true))?.to_vec::<f32>()?;
    assert!(whole.iter().zip(&alone).all(|(a, b)| (a - b).abs() < 1e-5));
    let seeing = encoder.call(Encode::new(&x))?.narrow(0, 0, 3)?.to_vec::<f32>()?;
    assert!(seeing.iter().zip(&alone).any(|(a, b)| (a - b).abs() > 1e-3));
    Ok(())
}

#[test]
fn a_decoder_is_its_layers_and_a_norm() -> Result<()> {
    let decoder = TransformerDecoder::new(vec![TransformerDecoderLayer::new(8, 2, 16)?])?;
    decoder.eval();
    let (tgt, memory) = (Tensor::randn([4, 2, 8], ())?, Tensor::randn([6, 2, 8], ())?);
    let whole = decoder.call(Decode::new(&tgt, &memory).tgt_is_causal(true))?;
    let layer = decoder.layers[0].call(Decode::new(&tgt, &memory).tgt_is_causal(true))?;
    assert_eq!(whole.to_vec::<f32>()?, layer.to_vec::<f32>()?);
    assert!(TransformerDecoder::new(Vec::new()).is_err());
    Ok(())
}

#[test]
fn dropout_is_off_in_use_and_options_reach_all_layers() -> Result<()> {
    let model = Transformer::new(8, 2, 2, 1, 16)?.dropout(0.5)?.batch_first(true)?;
    let (src, tgt) = (Tensor::randn([2, 4, 8], ())?, Tensor::randn([2, 3, 8], ())?);
    let run = || model.call(Transform::new(&src, &tgt)).and_then(|out| out.to_vec::<f32>());
    assert_ne!(run()?, run()?);
    model.eval();
    assert_eq!(run()?, run()?);
    Ok(())
}

#[test]
fn sequences_that_do_not_fit_are_refused() -> Result<()> {
    let model = Transformer::new(8, 2, 1, 1, 16)?;
    let ones = |shape: &[usize]| Tensor::ones(shape, ());
    let error = model.call(Transform::new(&ones(&[4, 2, 8])?, &ones(&[3, 3, 8])?)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Transformer: src and tgt are [4, 2, 8] and [3, 3, 8], expected [steps, batch, 8] of one batch, or [steps, 8]"
    );
    assert!(model.call(Transform::new(&ones(&[4, 2, 7])?, &ones(&[3, 2, 8])?)).is_err());
    assert!(TransformerEncoderLayer::new(8, 3, 16).is_err());
    Ok(())
}
