"""All calls of the HTTP API, as methods that both clients share."""

from bochner_client.calls import (
    aliases,
    datasets,
    index_jobs,
    indexes,
    jobs,
    keys,
    local,
    maps,
    measurements,
    service,
    vectors,
)
from bochner_client.methods import iterating, method, starting


class Operations:
    """Methods for all calls of the HTTP API."""

    put_map = method(maps.put_map)
    preview_map = method(maps.preview_map)
    get_map = method(maps.get_map)
    list_maps = method(maps.list_maps)
    iter_maps = iterating(maps.iter_maps)
    delete_map = method(maps.delete_map)
    get_array = method(maps.get_array)
    export_map = method(maps.export_map)
    local = method(local.local)

    transform = method(vectors.transform)
    kernel = method(vectors.kernel)
    codes = method(vectors.codes)
    similarity = method(vectors.similarity)

    put_dataset = method(datasets.put_dataset)
    get_dataset = method(datasets.get_dataset)
    list_datasets = method(datasets.list_datasets)
    iter_datasets = iterating(datasets.iter_datasets)
    delete_dataset = method(datasets.delete_dataset)

    put_index = method(indexes.put_index)
    get_index = method(indexes.get_index)
    list_indexes = method(indexes.list_indexes)
    iter_indexes = iterating(indexes.iter_indexes)
    delete_index = method(indexes.delete_index)
    upsert_vectors = method(indexes.upsert_vectors)
    delete_vector = method(indexes.delete_vector)
    get_vector = method(indexes.get_vector)
    list_vectors = method(indexes.list_vectors)
    iter_vectors = iterating(indexes.iter_vectors)
    plan_bands = method(indexes.plan_bands)
    count_vectors = method(indexes.count_vectors)
    delete_vectors = method(indexes.delete_vectors)
    change_tags = method(indexes.change_tags)
    search_index = method(indexes.search_index)
    find_duplicates = method(indexes.find_duplicates)
    start_duplicates = starting(indexes.start_duplicates)
    copy_index = method(index_jobs.copy_index)
    start_copy = starting(index_jobs.start_copy)
    measure_recall = method(index_jobs.measure_recall)
    start_recall = starting(index_jobs.start_recall)

    put_alias = method(aliases.put_alias)
    get_alias = method(aliases.get_alias)
    list_aliases = method(aliases.list_aliases)
    iter_aliases = iterating(aliases.iter_aliases)
    delete_alias = method(aliases.delete_alias)

    diagnose = method(measurements.diagnose)
    start_diagnosis = starting(measurements.start_diagnosis)
    draw_diagnosis = method(measurements.draw_diagnosis)
    recommend = method(measurements.recommend)
    start_recommendation = starting(measurements.start_recommendation)
    draw_recommendation = method(measurements.draw_recommendation)
    advise = method(measurements.advise)
    start_advice = starting(measurements.start_advice)
    draw_advice = method(measurements.draw_advice)

    get_job = method(jobs.get_job)
    list_jobs = method(jobs.list_jobs)
    iter_jobs = iterating(jobs.iter_jobs)
    watch_job = iterating(jobs.watch_job)
    wait_for_job = method(jobs.wait_for_job)
    cancel_job = method(jobs.cancel_job)
    get_job_result = method(jobs.get_job_result)
    get_job_picture = method(jobs.get_job_picture)

    create_key = method(keys.create_key)
    list_keys = method(keys.list_keys)
    revoke_key = method(keys.revoke_key)

    live = method(service.live)
    ready = method(service.ready)
    info = method(service.info)
    catalog = method(service.catalog)
    metrics = method(service.metrics)
    problem = method(service.problem)
    openapi = method(service.openapi)
