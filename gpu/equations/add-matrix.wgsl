#import parts/main
{
  let number = (group.y * groups.x + group.x) * THREADS + thread;
  if (number < params.fours) {
    sum[params.first + number] += addend[params.first + number];
  }
}
