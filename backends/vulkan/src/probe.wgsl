struct Numbers { count: u32, pair: vec2<f32>, turn: mat3x3<f32> }
override scale: i32 = 3;
@group(0) @binding(0) var<uniform> numbers: Numbers;
@group(0) @binding(1) var<storage, read> inputs: array<vec3<f32>>;
@group(0) @binding(2) var<storage, read_write> outputs: array<atomic<u32>>;
@group(0) @binding(3) var picture: texture_2d<f32>;
@group(0) @binding(4) var painted: texture_storage_2d<rgba8unorm, write>;
var<workgroup> tile: array<array<f32, 8>, 8>;

fn sum(values: array<f32, 4>, which: u32) -> f32 {
    var all = values;
    return all[which] + all[0];
}

@compute @workgroup_size(8, 8)
fn main(
    @builtin(global_invocation_id) id: vec3<u32>,
    @builtin(local_invocation_id) local: vec3<u32>,
    @builtin(local_invocation_index) index: u32,
) {
    let point = vec2<i32>(id.xy);
    tile[local.x][local.y] = textureLoad(picture, point, 0).x;
    workgroupBarrier();
    var total = 0.0;
    for (var i = 0u; i < numbers.count; i++) {
        total += sum(array<f32, 4>(1.0, 2.0, f32(i), tile[i][index]), i);
        if total > 100.0 { continue; }
        total = dot(numbers.turn * inputs[i], vec3(total));
    }
    switch i32(index) % scale {
        case 0: { total = fma(total, numbers.pair.x, numbers.pair.y); }
        case 1, 2: { total = pow(abs(total), 0.5); }
        default: { total = f32(i32(total) / scale); }
    }
    atomicAdd(&outputs[id.x], bitcast<u32>(total));
    textureStore(painted, point, vec4(total));
}
