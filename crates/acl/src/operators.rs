//! Operators: each line stands for a pair of C functions.

/// Hands every operator to the macro `$with`: a short name, the C name, and the class of
/// each argument.
///
/// The line `add = aclnnAdd(x: Tensor, …)` stands for `aclnnAddGetWorkspaceSize(x, …,
/// uint64_t *size, aclOpExecutor **plan)` and for `aclnnAdd(workspace, size, plan, stream)`.
#[macro_export]
macro_rules! operators {
    ($with:ident) => {
        $with! {
            add = aclnnAdd(x: Tensor, other: Tensor, alpha: Scalar, out: Tensor);
            adds = aclnnAdds(x: Tensor, other: Scalar, alpha: Scalar, out: Tensor);
            inplace_add = aclnnInplaceAdd(x: Tensor, other: Tensor, alpha: Scalar);
            inplace_adds = aclnnInplaceAdds(x: Tensor, other: Scalar, alpha: Scalar);
            sub = aclnnSub(x: Tensor, other: Tensor, alpha: Scalar, out: Tensor);
            subs = aclnnSubs(x: Tensor, other: Scalar, alpha: Scalar, out: Tensor);
            rsub = aclnnRsub(x: Tensor, other: Tensor, alpha: Scalar, out: Tensor);
            rsubs = aclnnRsubs(x: Tensor, other: Scalar, alpha: Scalar, out: Tensor);
            mul = aclnnMul(x: Tensor, other: Tensor, out: Tensor);
            muls = aclnnMuls(x: Tensor, other: Scalar, out: Tensor);
            inplace_mul = aclnnInplaceMul(x: Tensor, other: Tensor);
            inplace_muls = aclnnInplaceMuls(x: Tensor, other: Scalar);
            div = aclnnDiv(x: Tensor, other: Tensor, out: Tensor);
            divs = aclnnDivs(x: Tensor, other: Scalar, out: Tensor);
            pow_tensor_scalar = aclnnPowTensorScalar(x: Tensor, exponent: Scalar, out: Tensor);
            pow_tensor_tensor = aclnnPowTensorTensor(x: Tensor, exponent: Tensor, out: Tensor);
            maximum = aclnnMaximum(x: Tensor, other: Tensor, out: Tensor);
            inplace_addcdiv = aclnnInplaceAddcdiv(x: Tensor, a: Tensor, b: Tensor, value: Scalar);
            inplace_addcmul = aclnnInplaceAddcmul(x: Tensor, a: Tensor, b: Tensor, value: Scalar);
            inplace_lerps = aclnnInplaceLerps(x: Tensor, end: Tensor, weight: Scalar);

            neg = aclnnNeg(x: Tensor, out: Tensor);
            exp = aclnnExp(x: Tensor, out: Tensor);
            log = aclnnLog(x: Tensor, out: Tensor);
            sqrt = aclnnSqrt(x: Tensor, out: Tensor);
            reciprocal = aclnnReciprocal(x: Tensor, out: Tensor);
            relu = aclnnRelu(x: Tensor, out: Tensor);
            threshold_backward = aclnnThresholdBackward(grad: Tensor, x: Tensor, threshold: Scalar, out: Tensor);
            tanh = aclnnTanh(x: Tensor, out: Tensor);
            tanh_backward = aclnnTanhBackward(grad: Tensor, output: Tensor, out: Tensor);
            sigmoid = aclnnSigmoid(x: Tensor, out: Tensor);
            sigmoid_backward = aclnnSigmoidBackward(grad: Tensor, output: Tensor, out: Tensor);
            softplus = aclnnSoftplus(x: Tensor, beta: Scalar, threshold: Scalar, out: Tensor);
            softplus_backward = aclnnSoftplusBackward(grad: Tensor, x: Tensor, beta: Scalar, threshold: Scalar, out: Tensor);

            eq_tensor = aclnnEqTensor(x: Tensor, other: Tensor, out: Tensor);
            eq_scalar = aclnnEqScalar(x: Tensor, other: Scalar, out: Tensor);
            gt_tensor = aclnnGtTensor(x: Tensor, other: Tensor, out: Tensor);
            gt_scalar = aclnnGtScalar(x: Tensor, other: Scalar, out: Tensor);
            s_where = aclnnSWhere(condition: Tensor, x: Tensor, other: Tensor, out: Tensor);

            mm = aclnnMm(x: Tensor, other: Tensor, out: Tensor, cube: i8);
            addmm = aclnnAddmm(x: Tensor, a: Tensor, b: Tensor, beta: Scalar, alpha: Scalar, out: Tensor, cube: i8);
            batch_matmul = aclnnBatchMatMul(x: Tensor, other: Tensor, out: Tensor, cube: i8);

            reduce_sum = aclnnReduceSum(x: Tensor, dims: IntArray, keep: bool, dtype: DataType, out: Tensor);
            mean = aclnnMean(x: Tensor, dims: IntArray, keep: bool, dtype: DataType, out: Tensor);
            max = aclnnMax(x: Tensor, out: Tensor);
            max_dim = aclnnMaxDim(x: Tensor, dim: i64, keep: bool, out: Tensor, indices: Tensor);
            arg_max = aclnnArgMax(x: Tensor, dim: i64, keep: bool, out: Tensor);

            log_softmax = aclnnLogSoftmax(x: Tensor, dim: i64, out: Tensor);
            log_softmax_backward = aclnnLogSoftmaxBackward(grad: Tensor, output: Tensor, dim: i64, out: Tensor);
            nll_loss = aclnnNLLLoss(x: Tensor, target: Tensor, weight: Tensor, reduction: i64, ignore: i64, out: Tensor, total: Tensor);
            nll_loss_backward = aclnnNLLLossBackward(grad: Tensor, x: Tensor, target: Tensor, weight: Tensor, reduction: i64, ignore: i64, total: Tensor, out: Tensor);

            embedding = aclnnEmbedding(weight: Tensor, indices: Tensor, out: Tensor);
            embedding_dense_backward = aclnnEmbeddingDenseBackward(grad: Tensor, indices: Tensor, rows: u64, padding: u64, scale_by_frequency: bool, out: Tensor);
            index_select = aclnnIndexSelect(x: Tensor, dim: i64, index: Tensor, out: Tensor);
            index_add = aclnnIndexAdd(x: Tensor, dim: i64, index: Tensor, source: Tensor, alpha: Scalar, out: Tensor);

            inplace_copy = aclnnInplaceCopy(x: Tensor, source: Tensor);
            inplace_fill_scalar = aclnnInplaceFillScalar(x: Tensor, value: Scalar);
            inplace_zero = aclnnInplaceZero(x: Tensor);
            apply_adam_w_v2 = aclnnApplyAdamWV2(x: Tensor, m: Tensor, v: Tensor, max_v: OptionalTensor, grad: Tensor, step: Tensor, lr: f32, beta1: f32, beta2: f32, weight_decay: f32, eps: f32, amsgrad: bool, maximize: bool);
        }
    };
}
