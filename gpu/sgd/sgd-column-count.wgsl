#import parts/main
{
  let first = (group.y * groups.x + group.x) * RATINGS;
  for (var at = first + thread; at < min(first + RATINGS, params.ratings); at += THREADS) {
    atomicAdd(&counts[indices[at]], 1u);
  }
}
