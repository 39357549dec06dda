//! Rows picked and added to by index. An index out of range shows at the next wait.

use crate::aclnn;
use cresset_tensor::ops::{Embedding, EmbeddingDenseBackward, IndexAdd, IndexSelect};
use cresset_tensor::{Kernel, Key};

/// The library's padding row for none: -1, unsigned.
const NO_PADDING: u64 = u64::MAX;

pub(super) fn register(npu: Key) {
    IndexSelect::table()
        .register(npu, |op, [x, index], out| aclnn::index_select(x, *op.dim as i64, index, out));
    IndexAdd::table().register(npu, |op, [x, source, index], out| {
        aclnn::index_add(x, *op.dim as i64, index, source, op.alpha, out)
    });
    Embedding::table().register(npu, |_, [weight, indices], out| aclnn::embedding(weight, indices, out));
    EmbeddingDenseBackward::table().register(npu, |op, [grad, indices], out| {
        let padding = op.padding.map_or(NO_PADDING, |row| row as u64);
        aclnn::embedding_dense_backward(grad, indices, op.rows as u64, padding, op.scale_by_frequency, out)
    });
}
