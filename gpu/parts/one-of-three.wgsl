// The subgroup's sum of one of three numbers: lane 0 returns the first, lane 1 the third, lane 2 the second.
// Two exchanges between lanes leave each lane with only one number to sum.
fn one_of_three(thread: u32, mine: vec3f) -> f32 {
  let odd = (thread & 1u) == 1u;
  let second = (thread & 2u) == 2u;
  let low = select(mine.x, mine.z, odd) + subgroupShuffleXor(select(mine.z, mine.x, odd), 1u);
  let high = select(mine.y, mine.z, odd) + subgroupShuffleXor(select(mine.z, mine.y, odd), 1u);
  var one = select(low, high, second) + subgroupShuffleXor(select(high, low, second), 2u);
  one += subgroupShuffleXor(one, 4u);
  one += subgroupShuffleXor(one, 8u);
  return one + subgroupShuffleXor(one, 16u);
}
