// Four features in float16, divided by their columns' largest |x| and rounded to 8 bits. The minimum avoids a
// division by 0 in columns of zeros.
fn rounded_quad(words: vec2u, largest: vec4f) -> u32 {
  return pack4x8snorm(vec4f(unpack2x16float(words.x), unpack2x16float(words.y)) / max(largest, vec4f(1e-30)));
}
