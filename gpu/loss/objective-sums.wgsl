// The lowest row without a finite solution is copied, so that the host needs only one download.

var<workgroup> partial: array<f32, THREADS>;

#import parts/main
{
  #import parts/share-of-rows
  var sum = 0.0;
  for (var row = first + thread; row < min(first + ROWS, params.to_row); row += THREADS) {
    sum += bitcast<f32>(status[STATUS_HEADER + row]);
  }
  #import parts/add-threads
  if (thread == 0) {
    results[1 + number] = bitcast<u32>(partial[0]);
    if (number == 0) {
      results[0] = status[0];
    }
  }
}
