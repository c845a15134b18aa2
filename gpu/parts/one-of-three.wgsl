// Adds three numbers of each thread over the subgroup, with fewer exchanges between lanes than three separate
// sums: after two exchanges each lane continues with only one of the numbers. Lane 0 returns the sum of the
// first number, lane 1 of the third, lane 2 of the second.
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
